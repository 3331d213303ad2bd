// The command table and what can be asked of it.
#include "core/command/command.h"

// The options of Trinity-RFT's scripts/context_length_test/search_context_length_capacity.py.
static const struct option_alias published_options[] = {
    {.name = "model_path", .setting = "model"},
    {.name = "start_length", .setting = "start"},
    {.name = "log_dir", .setting = "log-dir"},
    {.name = "checkpoint_path", .setting = "checkpoint-path"},
    {.name = "test_gpu_num", .setting = "gpus", .many = true},
    {.name = "test_sp_num", .setting = "sp", .many = true},
    {.name = "save_hf_checkpoint", .setting = "save-hf"},
    {.name = "entropy_saving", .setting = "entropy-saving", .bare = "on"},
    {.name = "offload", .setting = "offload", .bare = "all"},
    {.name = "use_fused_kernels", .setting = "fused-kernels", .bare = "on"},
    {.name = "trainer_strategy", .setting = "strategy", .spelled = "fsdp", .meant = "fsdp1"},
    {.name = "dlc", .setting = "dlc", .bare = "on"},
    {.name = "config", .setting = "trinity-config"}, // of `trinity run`, as is plugin-dir
    {0},
};

// vLLM's and SGLang's own names, and what of theirs is not modelled.
#define NO_DRAFTS   "drafts of speculative decoding are not modelled"
#define NO_REPLICAS "replicas are not modelled: each is a server by itself, of --tp x --pp GPUs"
#define NO_ADAPTERS "adapters beside the weights are not modelled"
#define NO_SPREAD   "whole experts on each GPU are not modelled; --tp divides every expert"
#define NO_OFFLOAD  "weights in host memory are not modelled"
#define NO_HANDING  "keys and values that go to another server or to host memory are not modelled"
static const struct option_alias server_options[] = {
    {.name = "max-model-len", .setting = "context"},
    {.name = "context-length", .setting = "context"},
    {.name = "tensor-parallel-size", .setting = "tp"},
    {.name = "tp-size", .setting = "tp"},
    {.name = "pipeline-parallel-size", .setting = "pp"},
    {.name = "pp-size", .setting = "pp"},
    {.name = "kv-cache-dtype", .setting = "kv-dtype"},
    {.name = "quantization", .setting = "dtype"},
    {.name = "max-running-requests", .setting = "max-num-seqs"},
    {.name = "enable-lora", .refused = NO_ADAPTERS},
    {.name = "cpu-offload-gb", .refused = NO_OFFLOAD},
    {.name = "speculative-config", .refused = NO_DRAFTS},
    {.name = "speculative-algorithm", .refused = NO_DRAFTS},
    {.name = "speculative-model", .refused = NO_DRAFTS},
    {.name = "kv-transfer-config", .refused = NO_HANDING},
    {.name = "kv-offloading-size", .refused = NO_HANDING},
    {.name = "disaggregation-mode", .refused = NO_HANDING},
    {.name = "enable-hierarchical-cache", .refused = NO_HANDING},
    {.name = "data-parallel-size", .refused = NO_REPLICAS},
    {.name = "dp-size", .refused = NO_REPLICAS},
    {.name = "enable-dp-attention", .refused = NO_REPLICAS},
    {.name = "enable-expert-parallel", .refused = NO_SPREAD},
    {.name = "ep-size", .refused = NO_SPREAD},
    {0},
};

// The student is the model.
static const struct option_alias split_options[] = {
    {.name = "student", .setting = "model"},
    {0},
};

const struct command commands[] = {
    {.name = "predict",
     .summary = "whether a training configuration fits, its peak, and who is alive there",
     .description =
         "Simulates three training steps (two under trinity) tensor by tensor and replays them "
         "through torch's "
         "allocator. Says whether they fit, how safely (safe, tight or no: what stays free against "
         "how far such predictions were off), what is alive at the peak, and when they do not fit "
         "what they would need and what would help, computed. Exits with 1 when they do not fit.",
     .uses = USE_JOB,
     .settings = "margin host-memory host-cores network nvme mean-length data data-rank "
                 "batch-lengths explain "
                 "timeline trace snapshot store",
     .host = HOST_STORE,
     .answer = predict_answer,
     .examples = {{"predict --model Qwen3-8B --gpu 8xH100-80G --context 32k", "one configuration"},
                  {"predict --from request.yaml --explain on", "with every constant's evidence"},
                  {"predict --model Qwen3-4B --gpu H200 --context 16k --timeline out.svg",
                   "a picture of three steps"}}},
    {.name = "max",
     .summary = "the longest context that trains, and what stops the next one",
     .description =
         "Searches the largest context of a grid before the first that is not safe, and the "
         "largest "
         "that fits (--margin 0: only that), for one "
         "configuration or for lists of models, machines and sequence parallel sizes "
         "(--gpu 1,2,4xA100-80G --sp 1,2 --model Qwen3-0.6B,Qwen3-4B). Says what stops the next "
         "length: phase, tensor, fragmentation or exhaustion. In tables * marks lengths beyond "
         "the positions of the model (YaRN) and - that nothing fits. Exits with 1 when nothing "
         "does.",
     .uses = USE_JOB,
     .without = "context",
     .settings = "grid margin host-memory host-cores network mean-length data explain format svg",
     .answer = max_answer,
     .examples = {{"max --model Qwen3-8B --gpu 8xH100-80G", "one configuration"},
                  {"max --model Qwen3-0.6B,Qwen3-4B --gpu 1,2,4xA100-80G --sp 1,2,4 --grid trinity",
                   "a table"},
                  {"max --model Qwen3-8B --gpu 1,2,4,8xH200 --svg map.svg", "with a heat map"}}},
    {.name = "guide",
     .summary = "the simplest configuration that trains each length, for models and machines",
     .description =
         "For every length, model and machine, names the first of a list of configurations, from "
         "vanilla to offloading, that trains it. Writes tables, or with --format markdown or html "
         "a "
         "whole guide: tables for each machine, what to try when memory runs out, YaRN's "
         "settings and the longest context of every configuration. Env is expandable segments, "
         "SP=N sequence parallel, Offload FSDP2's offload (ZeRO-3's under deepspeed; under "
         "trinity without a checkpoint in Hugging Face's format); --order gives another list. A "
         "configuration reaches as far as the longest length before the first that is not safe, or "
         "with --margin 0 does not fit. Exits with 1 when nothing fits.",
     .uses = USE_JOB,
     .without = "context sp cp cp-rank offload expandable fused-kernels strategy save-hf",
     .settings = "lengths order grid margin host-memory format",
     .answer = guide_answer,
     .examples = {{"guide --recipe trinity --model Qwen3-0.6B,Qwen3-4B --gpu 1,2,4,6xA100-80G",
                   "the tables"},
                  {"guide --recipe trinity --model Qwen3-8B --gpu 2,4,8xH100-80G --format html",
                   "a page to share"},
                  {"guide --model Qwen3-8B --gpu 8xH200 --lengths 32k,64k,128k --order vanilla,Env",
                   "some lengths, two configurations"}}},
    {.name = "plan",
     .summary = "the best configuration for a model, a machine and a batch, not just one that fits",
     .description =
         "Predicts every configuration that the framework runs, that 'emit' writes and that trains "
         "the same: strategy, ranks that share a sequence, micro-batches, checkpointing, loss, "
         "offload, "
         "segments; what is given stays as it is. Keeps those that are safe in GPU and host memory "
         "and names the best: with its command, its files, its time, and with --data-size its "
         "hours and cost. Then why others lost, memory against time, what more GPUs would buy; "
         "where nothing is safe, the least change that helps. Exits with 1 when nothing is safe.",
     .uses = USE_JOB,
     .without = "batch accum cp-rank",
     .settings =
         "global-batch goal exhaustive data-size epochs price samples mean-length data margin "
         "host-memory host-cores network svg",
     .answer = plan_answer,
     .examples =
         {{"plan --recipe trl --task reward --model Qwen3-4B --gpu 8xRTX4090 --context 2048 "
           "--global-batch 128 --data-size 160791 --price 0.4",
           "the best way, its hours and cost"},
          {"plan --recipe trl --model Qwen3-8B --gpu 8xH100-80G --context 16k "
           "--global-batch 64 --goal memory",
           "what takes least"}}},
    {.name = "batch",
     .summary = "every way to make up a global batch, with its memory and time",
     .description =
         "Lists every micro-batch x accumulation x data-parallel ranks that make up a global "
         "batch, as the framework counts them, with memory, time and, with --data-size, steps and "
         "hours; the largest micro-batch that is safe; what divides what, where it cannot be made "
         "up. With --was, --batch and --accum are those of another machine, whose training stays "
         "the same. With --eval-size what an evaluation takes. Exits with 1 when no way is safe.",
     .uses = USE_JOB,
     .without = "cp-rank",
     .settings = "global-batch was data-size epochs price eval-every samples mean-length data "
                 "margin host-memory host-cores network",
     .answer = batch_answer,
     .examples = {{"batch --recipe trl --task reward --strategy zero3 --model Qwen3-4B --gpu "
                   "8xRTX4090 --context 2048 --global-batch 128 --data-size 160791",
                   "all ways to 128 pairs a step"},
                  {"batch --recipe trl --model Qwen3-4B --gpu 4xH100-80G --context 4096 --was "
                   "8xA100-80G --batch 2 --accum 8",
                   "the same training on another machine"}}},
    {.name = "serve",
     .summary = "whether an inference server starts, and how many tokens and sequences it holds",
     .description =
         "Divides a card as vLLM or SGLang does at its start: weights on each GPU, what profiling "
         "or "
         "a fixed reserve takes, the cache of keys and values that is left, its tokens and the "
         "sequences of the wanted length, the flags that follow, and how fast it answers (a range "
         "that nobody measured here). --max-model-len is another word for --context. Exits with 1 "
         "when it does not start, and names the least change that helps.",
     .settings = "model gpu layers tied like context engine tp pp gpu-memory-utilization "
                 "mem-fraction-static max-num-seqs max-num-batched-tokens chunked-prefill-size "
                 "cuda-graph-max-bs max-total-tokens dtype kv-dtype enforce-eager",
     .answer = serve_answer,
     .examples =
         {{"serve --model Qwen3-8B --gpu H100-80G --engine vllm --context 32k", "one GPU"},
          {"serve --model Qwen3-VL-30B-A3B-Thinking --gpu 2xH100-80G --tp 2 --engine sglang",
           "a teacher on two"},
          {"serve --model gpt-oss-120b --gpu H100-80G --engine vllm@0.19 "
           "--gpu-memory-utilization 0.95 --max-num-seqs 256",
           "an older version, with its flags"}},
     .aliases = server_options},
    {.name = "split",
     .summary = "GPUs divided between a teacher, a student's training and its rollout",
     .description =
         "On-policy distillation runs three programs at once. Looks at every division of the GPUs "
         "that can be: the teacher's server, which reads and generates nothing, the student's "
         "training where it is safe, the engines that make its answers; each on GPUs of its own, "
         "or in turn on the same with engines asleep; with what each takes of a card and how long. "
         "Shows the best, the divisions with most teacher and most training, the balanced one, the "
         "best of each layout, a map of the nodes, what one GPU more would save, where there is "
         "slack, and what helps a role that runs out of memory. --emit writes the framework's "
         "launch files. --student is another word for --model.",
     .settings = "model gpu teacher engine framework layout rollout-batch samples global-batch "
                 "prompt response images image-size teacher-gpus rollout emit force dataset",
     .answer = split_answer,
     .examples =
         {{"split --teacher Qwen3-VL-30B-A3B-Thinking --student Qwen3-VL-4B-Thinking --gpu "
           "8xH100-80G --images 1",
           "one node"},
          {"split --teacher Qwen3-32B --student Qwen3-8B --gpu 16xH100-80G --response 8k "
           "--framework trinity",
           "two, as Trinity trains"},
          {"split --teacher Qwen3-32B --student Qwen3-8B --gpu 8xH100-80G --framework slime "
           "--emit run",
           "with slime's launch files"}},
     .aliases = split_options},
    {.name = "probe",
     .summary = "the longest context that trains, found by real runs",
     .description =
         "Starts training jobs of different lengths until the longest that fits is known. The "
         "prediction says where to look: where it is right, two launches do. Every trial is "
         "supervised, classified by its log, and kept in a store, so that the same command goes on "
         "after an interruption. --engine torch runs a worker of ours, --engine command a script "
         "of "
         "yours; with --one-gpu either plays one rank of any number on one GPU, unchanged, with "
         "--as another card. The command line of Trinity-RFT's capacity "
         "test works as it is: its options are taken under their names, and mean --engine trinity "
         "on 1, 2, 4 and 6 GPUs where nothing else is said.",
     .uses = USE_JOB | USE_TRIAL | USE_HUNT,
     .without = "gpu context max-token-len log-prob-max-token-len for around ep "
                "checkpoint-offload",
     .settings = "",
     .host = HOST_TRIALS,
     .answer = probe_answer,
     .examples = {{"probe --model Qwen3-0.6B --gpus 1,2,4 --sp 1,2 --engine torch --one-gpu --as "
                   "A100-80G --recipe trinity",
                   "an A100 node's limits, on one GPU"},
                  {"probe --gpus 8 --engine command --command 'torchrun train.py --len {context}'",
                   "any trainer"},
                  {"probe --gpus 64 --engine command --one-gpu --as H100-80G --command 'python "
                   "train.py --len {context}'",
                   "your own script as rank 0 of 64, on one GPU"},
                  {"probe --list", "what was found so far"}},
     .aliases = published_options,
     .alias_settings = "engine=trinity gpus=1,2,4,6"},
    {.name = "models",
     .summary = "the models known by name, or one model in full",
     .description =
         "Without a model, lists the catalogue. With one, prints its shapes, its parameters in "
         "total and by part, and its bytes in each precision. A model folder's safetensors "
         "headers are counted too and compared.",
     .operand = "model",
     .settings = "model layers tied like",
     .answer = models_answer,
     .examples = {{"models", "the catalogue"},
                  {"models Qwen3-8B", "one model"},
                  {"models ./my-model --json", "a folder with a config.json"}}},
    {.name = "gpus",
     .summary = "the GPUs known by name, one of them, or this machine's",
     .description =
         "Without an argument, lists the catalogue: memory as torch sees it, rates, links, and "
         "with --json where each number comes from. With one, shows that machine; auto asks "
         "NVML for this machine's GPUs.",
     .operand = "gpu",
     .settings = "gpu",
     .answer = gpus_answer,
     .examples = {{"gpus", "the catalogue"},
                  {"gpus 8xH100-80G", "one node of eight"},
                  {"gpus auto", "this machine"}}},
    {.name = "show",
     .summary = "a model beside the machine it is meant for",
     .description = "Prints the model and the hardware of a request, and how the weights alone "
                    "compare with the memory there is.",
     .settings = "model gpu layers tied like",
     .answer = show_answer,
     .examples = {{"show --model Qwen3-8B --gpu 8xH100-80G", "both in full"},
                  {"show --from request.yaml", "settings from a file"}}},
    {.name = "emit",
     .summary = "the files that run a configuration in a framework, commented",
     .description =
         "Writes what a framework needs to run the configuration: its own files, a launch script "
         "and, where it has none, a training script. Comments say why a value was chosen and the "
         "predicted peak. What the framework would reject or silently ignore is refused. Nothing "
         "is written over without --force. Exits with 1 when the configuration is predicted not "
         "to fit; the files are written all the same.",
     .uses = USE_JOB | USE_FILES,
     .without = "cp-rank memory-limit layers tied like",
     .settings = "margin host-memory",
     .answer = emit_answer,
     .examples = {{"emit --for accelerate --model Qwen3-8B --gpu 8xH100-80G --context 16k -o run",
                   "FSDP2, ready for 'bash run/launch.sh'"},
                  {"emit --for trl --task dpo --model Qwen3-4B --gpu 8xH100-80G --context 8k",
                   "printed"},
                  {"emit --for slurm --around deepspeed --strategy zero3 --model Qwen3-14B --gpu "
                   "4x8xH100-80G --context 16k -o run",
                   "a Slurm job of four nodes"}}},
    {.name = "replay",
     .summary = "a recorded allocator history, replayed through an exact copy of torch's allocator",
     .description =
         "Reads a snapshot that torch.cuda.memory._dump_snapshot wrote, the same as JSON, or a "
         "trace "
         "of ours, plain or compressed. Prints the peaks, the fragmentation over time, the largest "
         "blocks at the peak and what pins memory, and says how many of the recorded driver calls "
         "the replay reproduced. --expandable, --memory-limit, --torch and --gpu replay the same "
         "program under other conditions.",
     .operand = "file",
     .settings = "file expandable memory-limit torch gpu svg",
     .document = "file",
     .answer = replay_answer,
     .examples = {{"replay snapshot.pickle", "what happened, and how much was fragmentation"},
                  {"replay snapshot.pickle --expandable on", "and with expandable segments"},
                  {"replay run.trace.z --memory-limit 79GiB --svg run.svg", "on a smaller card"}}},
    {.name = "doctor",
     .summary = "why a run died, read from its log",
     .description =
         "Reads a log of any size, plain or gzip-compressed, of one process or many: out-of-memory "
         "messages of torch 1.0 to 2.11 on CUDA, ROCm and XPU, of cuBLAS, NCCL, vLLM and sglang, "
         "kills by the kernel, Slurm, Kubernetes and Ray, full disks, failed collectives, wrong "
         "configurations. Says which rank died of what after which step, draws the card from the "
         "message's numbers, and lists what to change, the cheapest first. With a model and the "
         "settings of predict it lays the prediction beside it and computes what each change "
         "would do. Exits with 1 when the log names no cause.",
     .operand = "file",
     .uses = USE_JOB,
     .settings = "file margin host-memory",
     .document = "file",
     .streams = true,
     .answer = doctor_answer,
     .examples = {{"doctor train.log", "the cause, and what to change"},
                  {"doctor - < train.log.gz", "from standard input, compressed"},
                  {"doctor train.log --model Qwen3-8B --gpu 8xH100-80G --context 32k",
                   "beside the prediction"}}},
    {.name = "page",
     .summary = "all of this as a page for the browser, in one file",
     .description =
         "Writes one HTML file that answers the same questions in a browser, with this program's "
         "own code as WebAssembly: it opens from disk, needs no network and sends nothing "
         "anywhere. Logs and snapshots that are dropped on it stay on the machine.",
     .settings = "output",
     .host = HOST_PAGE,
     .answer = page_answer,
     .examples = {{"page -o fathom.html", "then open fathom.html"}}},
    {.name = "help",
     .summary = "this overview, one command, one setting, or all settings",
     .description = "Without an argument, lists the commands. With the name of a command or a "
                    "setting, explains it; 'settings' lists every setting.",
     .operand = "topic",
     .settings = "topic",
     .answer = help_answer,
     .examples = {{"help models", "one command"},
                  {"help precision", "one setting, and what each recipe sets"},
                  {"help settings", "every setting"}}},
    {.name = "man",
     .summary = "the manual page, as roff",
     .description = "Prints the manual page. 'make install' puts it where man finds it.",
     .settings = "",
     .answer = man_answer,
     .examples = {{"man | man -l -", "read it now"}}},
    {.name = "completion",
     .summary = "completions for bash, zsh or fish",
     .description = "Prints the completion script of a shell. 'make install' puts all three where "
                    "the shells find them.",
     .operand = "shell",
     .settings = "shell",
     .answer = completion_answer,
     .examples = {{"completion bash", "for ~/.bashrc: eval \"$(fathom completion bash)\""}}},
};

const ptrdiff_t command_count = COUNT_OF(commands);

const struct global_option global_options[] = {
    {"from", "FILE",
     "read settings from a file, of ours or a framework's, or a folder of them; options win"},
    {"json", NULL, "one JSON object on standard output, nothing else"},
    {"help", NULL, "explain the command"},
    {"version", NULL, "say which fathom this is"},
    {"debug", NULL, "with an error, the place in fathom's source that raised it"},
};

const ptrdiff_t global_option_count = COUNT_OF(global_options);

const struct command *command_find(struct str name)
{
    for (ptrdiff_t i = 0; i < command_count; i++)
        if (str_is(name, commands[i].name))
            return &commands[i];
    return NULL;
}

bool command_unknown(struct str name, struct error *e)
{
    struct str_nearest nearest = str_nearest_to(name);
    for (ptrdiff_t i = 0; i < command_count; i++)
        str_nearest_offer(&nearest, str_from(commands[i].name));
    FAIL(e, BAD_INPUT, STR_NONE, "there is no command '%.*s'", STR_ARGS(str_short(name)));
    if (nearest.best.n)
        return HINT(e, "did you mean '%.*s'?", STR_ARGS(nearest.best));
    return HINT(e, "'fathom help' lists them");
}

static bool takes_row(const struct command *c, const struct setting_def *def)
{
    struct str name = str_from(def->name);
    bool used = def->uses & c->uses && !(c->without && words_have(c->without, ' ', name));
    return used || words_have(c->settings, ' ', name);
}

bool command_takes(const struct command *c, struct str setting)
{
    const struct setting_def *def = setting_def_find(setting);
    return def && takes_row(c, def);
}

const struct setting_def *command_setting(const struct command *c, const struct setting_def *before)
{
    const struct setting_def *def = setting_def_next(before);
    while (def && !takes_row(c, def))
        def = setting_def_next(def);
    return def;
}

void answer_attach(struct answer *a, struct arena *arena, struct attachment file)
{
    a->attachments = arena_grow(arena, a->attachments, sizeof *a->attachments, a->attachment_count,
                                &a->attachment_capacity);
    a->attachments[a->attachment_count++] = file;
}

static bool check_taken(const struct command *c, const struct settings *s, struct error *e)
{
    for (ptrdiff_t i = 0; i < s->count; i++) {
        const struct setting *item = &s->items[i];
        if (setting_is_document(item->key))
            continue;
        if (!command_takes(c, item->key))
            return FAIL(e, BAD_INPUT, item->where, "'%s' takes no %.*s", c->name,
                        STR_ARGS(str_short(item->key)));
        if (settings_find(s, item->key) != item)
            return FAIL(e, BAD_INPUT, item->where, "%.*s is given twice",
                        STR_ARGS(str_short(item->key)));
    }
    return true;
}

bool command_check(const struct command *c, const struct settings *s, struct error *e)
{
    return settings_check(s, e) && check_taken(c, s, e);
}

bool command_answer(struct answer *a, const struct command *c, const struct query *q,
                    struct error *e)
{
    return command_check(c, q->settings, e) && c->answer(a, q, e);
}
