// The writers of documents, read back by libyaml and jansson, and the tables behind targets.
#include "tests/support/t.h"
#include "core/emit/emit.h"
#include "core/foreign/foreign.h"
#include "host/formats/json_in.h"
#include "host/formats/yaml_in.h"

// Texts that a careless writer loses: words and numbers of YAML 1.1, marks, spaces, line feeds.
static const char *const odd_texts[] = {
    "",
    "plain",
    "no",
    "Yes",
    "ON",
    "null",
    "~",
    "1e3",
    "0x10",
    "12:30",
    "1_000",
    ".5",
    "+1",
    "-",
    "2026-01-1",
    "a: b",
    "a #b",
    "#x",
    "- a",
    "[a]",
    "{a: b}",
    "\"q\"",
    "it's",
    "back\\slash",
    "tab\there",
    "line\nfeed",
    " leading",
    "trailing ",
    "100%",
    "@at",
    "`tick",
    "!tag",
    "&anchor",
    "*alias",
    "|",
    ">",
    "?",
    "a/b.c-d_e",
    "Qwen/Qwen3-8B",
    "\xC3\xA9t\xC3\xA9",
    "\xF0\x9F\x98\x80",
    "\xC2\x85next",
    "\xE2\x80\xA8sep",
};

static struct node *document_of(struct arena *a)
{
    struct node *root = document_in(a);
    root->note = STR("a head\nof two lines");
    for (ptrdiff_t i = 0; i < COUNT_OF(odd_texts); i++) {
        struct str path = str_format(a, "texts.%d.value", (int)i);
        struct node *n = document_at(root, a, path);
        n->kind = NODE_TEXT;
        n->value = str_from(odd_texts[i]);
        n->note = str_from(odd_texts[i]);
    }
    return root;
}

static void check_texts(const struct settings *s)
{
    struct arena *a = s->arena;
    for (ptrdiff_t i = 0; i < COUNT_OF(odd_texts); i++) {
        const struct setting *item = settings_find(s, str_format(a, "texts.%d.value", (int)i));
        CHECK(item);
        if (item)
            CHECK_STR(item->value, odd_texts[i]);
    }
}

TEST(odd_texts_survive_yaml)
{
    struct arena *a = test_arena();
    struct buf out = buf_in(a);
    struct settings s = settings_in(a);
    struct error e = {0};
    document_yaml(&out, document_of(a));
    CHECK(yaml_flatten(&s, buf_str(&out), STR("test.yaml"), &e));
    CHECK_STR(str_from(e.message), "");
    check_texts(&s);
}

TEST(odd_texts_survive_json)
{
    struct arena *a = test_arena();
    struct buf out = buf_in(a);
    struct settings s = settings_in(a);
    struct error e = {0};
    document_json(&out, document_of(a));
    CHECK(json_flatten(&s, buf_str(&out), STR_NONE, STR("test.json"), &e));
    CHECK_STR(str_from(e.message), "");
    check_texts(&s);
}

TEST(every_byte_survives_yaml)
{
    struct arena *a = test_arena();
    for (int byte = 1; byte < 128; byte++) {
        struct settings s = settings_in(a);
        struct error e = {0};
        struct buf out = buf_in(a);
        char text[] = {'a', (char)byte, 'b', 0};
        struct node *root = document_in(a), *n = document_at(root, a, STR("key"));
        n->kind = NODE_TEXT;
        n->value = str_from(text);
        n->note = str_from(text);
        document_yaml(&out, root);
        CHECK(yaml_flatten(&s, buf_str(&out), STR("test.yaml"), &e));
        if (s.count == 1)
            CHECK_STR(s.items[0].value, text);
        else
            test_failed(__FILE__, __LINE__, "byte %d is lost", byte);
    }
}

TEST(a_document_as_it_is_written)
{
    struct arena *a = test_arena();
    struct buf yaml = buf_in(a), json = buf_in(a);
    struct node *root = document_in(a);
    static const struct {
        const char *path;
        enum node_kind kind;
        const char *value, *note;
    } rows[] = {
        {"name", NODE_TEXT, "no", "quoted"},
        {"nested.count", NODE_LITERAL, "3", NULL},
        {"nested.list.0.a", NODE_LITERAL, "1", "first"},
        {"nested.list.0.b", NODE_LITERAL, "true", "inside"},
        {"nested.list.1.a", NODE_LITERAL, "2", NULL},
        {"words.0", NODE_TEXT, "x", NULL},
        {"empty", NODE_MAP, "", NULL},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        struct node *n = document_at(root, a, str_from(rows[i].path));
        n->kind = rows[i].kind;
        n->value = str_from(rows[i].value);
        n->note = str_from(rows[i].note);
    }
    document_yaml(&yaml, root);
    CHECK_STR(buf_str(&yaml), "# quoted\n"
                              "name: \"no\"\n"
                              "nested:\n"
                              "  count: 3\n"
                              "  list:\n"
                              "    # first\n"
                              "    - a: 1\n"
                              "      # inside\n"
                              "      b: true\n"
                              "    - a: 2\n"
                              "words:\n"
                              "  - x\n"
                              "empty: {}\n");
    document_json(&json, root);
    CHECK_STR(buf_str(&json), "{\n  \"name\": \"no\",\n  \"nested\": {\n    \"count\": 3,\n"
                              "    \"list\": [\n      {\n        \"a\": 1,\n        \"b\": true\n"
                              "      },\n      {\n        \"a\": 2\n      }\n    ]\n  },\n"
                              "  \"words\": [\n    \"x\"\n  ],\n  \"empty\": {}\n}\n");
}

TEST(facts_in_templates)
{
    struct arena *a = test_arena();
    struct draft *j = NEW(a, struct draft, 1);
    j->arena = a;
    draft_fact(j, "path", STR("it's a\nfile"));
    draft_fact(j, "word", STR("a/b-c.d"));
    CHECK_STR(draft_expand(j, STR("x @word@ y@z \"${a[@]}\""), EXPAND_SHELL),
              "x a/b-c.d y@z \"${a[@]}\"");
    CHECK_STR(draft_expand(j, STR("@path@"), EXPAND_SHELL), "'it'\\''s a\nfile'");
    CHECK_STR(draft_expand(j, STR("# @path@"), EXPAND_NOTE), "# it's a file");
    CHECK_STR(draft_expand(j, STR("@path@"), EXPAND_PLAIN), "it's a\nfile");
}

static bool emits(struct emit_files *files, struct arena *a, const char *request, struct error *e)
{
    struct settings *s = NEW(a, struct settings, 1);
    struct job *job = NEW(a, struct job, 1);
    struct draft *j = NEW(a, struct draft, 1);
    *s = settings_in(a);
    if (!settings_read(s, str_from(request), ' ', STR("test"), e) || !settings_check(s, e) ||
        !job_resolve(job, a, s, e) || !draft_from_job(j, a, job, e))
        return false;
    draft_fact(j, "predicted", STR("predicted"));
    return emit_check(j, e) && emit_files(files, j, e);
}

static const char *const every_target[] = {"accelerate", "deepspeed",    "trl",     "trinity",
                                           "verl",       "transformers", "axolotl", "llamafactory"};
static const char *const every_machine[] = {"H200", "8xH100-80G", "2x8xH100-80G"};
static const char *const every_variant[] = {
    "context=8k",
    "context=8k strategy=fsdp1",
    "context=8k strategy=ddp precision=autocast",
    "context=8k strategy=zero1 offload=optimizer",
    "context=8k strategy=zero2",
    "context=8k strategy=zero3 offload=all",
    "context=8k strategy=zero3 offload=all nvme=/nvme",
    "context=256k cp=4",
    "context=8k sp=2",
    "context=8k strategy=zero3 sp=2",
    "context=8k sp=4 offload=all expandable=on",
    "context=8k task=dpo dataset=a.jsonl",
    "context=8k task=reward",
    "context=8k task=grpo",
    "context=64k task=capacity verl=0.5 offload=all",
    "context=8k task=opd teacher=Qwen3-32B rollout=1",
    "context=8k checkpointing=off reshard=off optimizer=adamw-fused accum=4",
    "context=8k loss=chunked:256",
    "context=8k lora=16 lora-targets=q,v attention=flash2",
    "context=8k lora=16 quantize=nf4 task=kto",
};

static bool flatten_file(struct settings *s, const struct emit_file *file, struct error *e)
{
    if (str_ends(file->name, STR(".yaml")))
        return yaml_flatten(s, file->content, file->name, e);
    return !str_ends(file->name, STR(".json")) ||
           json_flatten(s, file->content, STR_NONE, file->name, e);
}

// Whether it was written; each of its documents must be readable, and a refusal one sentence.
static bool check_documents(struct arena *a, const char *request)
{
    struct emit_files files;
    struct error e = {0};
    if (!emits(&files, a, request, &e)) {
        CHECK(e.code == ERROR_BAD_INPUT && e.message[0] && e.where[0]);
        return false;
    }
    for (ptrdiff_t i = 0; i < files.count; i++) {
        struct settings s = settings_in(a);
        if (!flatten_file(&s, &files.items[i], &e))
            test_failed(__FILE__, __LINE__, "%s: %s", request, e.message);
    }
    return true;
}

// Every YAML and JSON of every combination is a document with unique keys.
TEST(documents_of_every_combination_can_be_read)
{
    int written = 0;
    for (ptrdiff_t t = 0; t < COUNT_OF(every_target); t++) {
        for (ptrdiff_t i = 0; i < COUNT_OF(every_machine) * COUNT_OF(every_variant); i++) {
            struct arena *a = test_arena();
            struct str request = str_format(a, "for=%s model=Qwen3-8B gpu=%s %s", every_target[t],
                                            every_machine[i / COUNT_OF(every_variant)],
                                            every_variant[i % COUNT_OF(every_variant)]);
            written += check_documents(a, str_z(a, request));
        }
    }
    CHECK(written > 60);
}

static ptrdiff_t place_in(struct str text, struct str part)
{
    for (ptrdiff_t at = 0; at + part.n <= text.n; at++)
        if (str_equal(str_slice(text, at, at + part.n), part))
            return at;
    return -1;
}

static bool has_model(const char *request)
{
    return place_in(str_from(request), STR("model=")) >= 0;
}

static const char *const refused[][2] = {
    {"for=accelerate model=Qwen3-VL-4B", "--for trl has data with images"},
    {"for=slurm around=deepspeed model=Qwen3-VL-4B", "--for trl has data with images"},
    {"for=trl task=reward model=Qwen3-VL-4B", "scores a sequence"},
    {"for=trl task=grpo model=Qwen3-VL-4B images=1", "--dataset with prompts and images"},
    {"for=accelerate model=Qwen3-4B attention=flash3", "with flash2 they are"},
    {"for=trinity task=opd teacher=Qwen3-32B model=Qwen3-VL-4B", "models of text only"},
    {"for=trl model=Qwen3-VL-4B images=1 freeze=vision", "no word for freezing"},
    {"for=axolotl strategy=fsdp2 model=Qwen3-VL-4B", "--images 1"},
    {"for=llamafactory model=Qwen3-VL-4B images=1 task=dpo", "written for sft"},
    {"for=trinity task=dpo dataset=x model=Qwen3-VL-4B", "dpo reads no images"},
    {"for=trinity model=gemma-3-4b", "no Gemma 3 with images"},
    {"for=verl model=gemma-3-4b", "no Gemma 3 with images"},
    {"for=slime dataset=x model=Qwen3-VL-4B", "slime 0.3.0 was the last"},
    {"for=accelerate sp=2", "Accelerate runs Ulysses through DeepSpeed only"},
    {"for=accelerate cp=2 strategy=fsdp1", "under fsdp2 only"},
    {"for=accelerate sp=3", "sp 3 does not divide the 8 GPUs"},
    {"for=accelerate loss=chunked:256", "--for trl has a chunked one"},
    {"for=accelerate offload=optimizer", "--offload all"},
    {"for=accelerate strategy=zero2 offload=all", "stage 3 only"},
    {"for=deepspeed tp=2", "files for DeepSpeed have no word for tp"},
    {"for=accelerate tp=2", "is of all GPUs of the job: --tp 8"},
    {"for=trl tp=8 strategy=fsdp2", "ReplicateParallel"},
    {"for=accelerate strategy=ddp reshard=off", "reshard is a policy of fsdp2"},
    {"for=deepspeed strategy=fsdp2", "zero1, zero2 and zero3"},
    {"for=trl loss=chunked:512", "256 tokens"},
    {"for=trl task=grpo strategy=fsdp2 cp=2", "TRL refuses context parallel"},
    {"for=trl task=opd strategy=zero3", "distill needs a teacher"},
    {"for=trl gpu=8xH100-80G replicate=8", "one GPU a group is ddp"},
    {"for=trl gpu=8xH100-80G strategy=zero3 replicate=2", "replicas are of fsdp's shards"},
    {"for=llamafactory gpu=H200 loss=liger", "together with its layer kernels"},
    {"for=llamafactory gpu=H200 layer-kernels=liger", "together with its loss"},
    {"for=trl save=never", "saves a checkpoint every 500 steps and the model at the end"},
    {"for=trl gpu=H200 save=sharded", "nothing of the model is sharded here"},
    {"for=trl task=distill strategy=zero3 teacher=gemma-2-9b", "both need the same vocabulary"},
    {"for=trl task=distill strategy=zero3 teacher=Qwen3-32B samples=4", "one answer a prompt"},
    {"for=trl gpu=8xH100-80G strategy=zero3 sp=2 attention=eager", "sdpa and flash-attn only"},
    {"for=trinity cp=2", "--sp"},
    {"for=trinity strategy=zero3", "fsdp1 or fsdp2"},
    {"for=trinity task=opd", "opd needs a teacher"},
    {"for=trinity task=opd teacher=gemma-2-9b", "must be the same"},
    {"for=verl expandable=on", "verl turns expandable segments on"},
    {"for=slime strategy=fsdp2 dataset=x", "slime trains with Megatron"},
    {"for=slime expandable=on dataset=x", "--rollout N"},
    {"for=slime", "--dataset FILE"},
    {"for=accelerate dataset=-x", "must not begin with a dash"},
    {"for=accelerate teacher=Qwen3-8B", "files for Accelerate have no word for teacher"},
    {"for=accelerate prompt=1k", "files for Accelerate have no word for prompt"},
    {"for=trl prompt=1k", "nothing is generated in this task"},
    {"for=trl task=grpo rollout-tp=2", "files for TRL have no word for rollout-tp"},
    {"for=verl prompt=1k response=2k", "prompt 1024 and response 2048 are not the context's"},
    {"for=verl response=8k", "leaves nothing of the context's 8192 tokens"},
    {"for=verl samples=3", "3 answers a prompt do not divide the 128 answers of a step"},
    {"for=verl samples=1", "compares at least two answers"},
    {"for=verl rollout-tp=3", "rollout-tp 3 must divide the 32 heads"},
    {"for=verl rollout-memory=90%", "from 0.05 to 0.98, not '90%'"},
    {"for=verl rollout-memory=0.06", "gpu_memory_utilization 0.06 leaves"},
    {"for=trinity rollout=2 rollout-tp=4", "and the GPUs that generate"},
};

TEST(what_frameworks_cannot_do_is_refused)
{
    for (ptrdiff_t i = 0; i < COUNT_OF(refused); i++) {
        struct arena *a = test_arena();
        struct emit_files files;
        struct error e = {0};
        struct str request = str_format(a, "gpu=8xH100-80G context=8k %s%s", refused[i][0],
                                        has_model(refused[i][0]) ? "" : " model=Qwen3-8B");
        bool ok = emits(&files, a, str_z(a, request), &e);
        struct str message = str_from(e.message), part = str_from(refused[i][1]);
        bool said = false;
        for (ptrdiff_t at = 0; at + part.n <= message.n; at++)
            said |= str_equal(str_slice(message, at, at + part.n), part);
        if (ok || !said || e.code != ERROR_BAD_INPUT)
            test_failed(__FILE__, __LINE__, "'%s' says '%s'", refused[i][0], e.message);
    }
}

static struct str file_of(const struct emit_files *files, const char *name)
{
    for (ptrdiff_t i = 0; i < files->count; i++)
        if (str_is(files->items[i].name, name))
            return files->items[i].content;
    return STR_NONE;
}

// What must be in a file, in this order, with a "!" what must not.
static const struct saying {
    const char *request, *file;
    const char *parts[4];
} sayings[] = {
    {"for=slurm around=trinity gpu=2x8xH100-80G expandable=on",
     "job.sbatch",
     {"--mem=0\n", "export PYTORCH_CUDA_ALLOC_CONF=", "ray start --head", "ray start --address"}},
    {"for=slurm around=slime gpu=2x8xH100-80G rollout=8 expandable=on dataset=x tp=4 cp=1",
     "job.sbatch",
     {"export PYTORCH_CUDA_ALLOC_CONF=", "export PYTORCH_ALLOC_CONF=", "ray start --head"}},
    {"for=trinity gpu=4xH100-80G expandable=on",
     "launch.sh",
     {"export PYTORCH_CUDA_ALLOC_CONF=", "before starting Ray", "ray start --head"}},
    {"for=trinity gpu=2x8xH100-80G expandable=on", "launch.sh", {"before starting Ray"}},
    {"for=slime gpu=4xH100-80G rollout=2 expandable=on dataset=x tp=4 cp=1",
     "launch.sh",
     {"export PYTORCH_CUDA_ALLOC_CONF=", "before starting Ray", "ray start --head"}},
    {"for=slurm gpu=8xH100-80G", "job.sbatch", {"--mem=0\n", "goes on from the newest"}},
    {"for=slurm around=trl gpu=8xH100-80G",
     "job.sbatch",
     {"TRL 1.14.1 and later go on", "!training goes on from"}},
    {"for=accelerate gpu=H100-80G loss=liger", "launch.sh", {"    --liger-loss\n"}},
    {"for=transformers gpu=H100-80G layer-kernels=liger", "launch.sh", {"    --liger-layers\n"}},
    {"for=trl gpu=8xH100-80G", "launch.sh", {"TRL 1.14.1 and later go on", "resume_from"}},
    {"for=trl gpu=8xH100-80G accum=2 sync-each-batch=on",
     "sft.yaml",
     {"trl >= 1.14.1", "transformers >= 5.2 (sync_each_batch)", "torch >= 2.6 (FSDP2)"}},
    {"for=trl gpu=8xH100-80G strategy=zero3 sp=2",
     "accelerate.yaml",
     {"accelerate >= 1.12 (Ulysses)", "deepspeed >= 0.18.6"}},
    {"for=accelerate gpu=8xH100-80G cp=2",
     "accelerate.yaml",
     {"accelerate >= 1.11 (context parallel)", "!trl", "!deepspeed"}},
    {"for=trinity gpu=4xH100-80G", "trinity.yaml", {"trinity-rft >= 0.6 with verl >= 0.8"}},
    {"for=trinity gpu=4xH100-80G verl=0.5", "trinity.yaml", {"trinity-rft 0.4 with verl 0.5"}},
    {"for=verl gpu=4xH100-80G", "launch.sh", {"verl >= 0.8"}},
    // 32B is 61.02 GiB in bf16: no card of 80 GB holds it and keys at 0.6, two do.
    {"for=verl model=Qwen3-32B gpu=8xA100-80G",
     "launch.sh",
     {"GPUs an engine: 2. Each has 30.51 GiB of bf16 weights, 1.00 GiB of keys",
      "4.00 GiB for vLLM itself, in 47.48 GiB (0.6 of the card)", "parallel_size=2\n",
      "utilization=0.6\n"}},
    {"for=verl model=Qwen3-32B gpu=8xA100-40G", "launch.sh", {"tensor_model_parallel_size=4\n"}},
    {"for=trinity model=Qwen3-32B gpu=4xA100-40G",
     "trinity.yaml",
     {"gpu_per_node: 8", "engine_num: 1\n", "tensor_parallel_size: 4", "utilization: 0.9\n"}},
    {"for=trinity model=Qwen3-32B gpu=2x8xA100-40G",
     "trinity.yaml",
     {"16 train, 8 generate", "engine_num: 2\n", "tensor_parallel_size: 4"}},
    {"for=trinity model=Qwen3-32B gpu=8xH100-80G rollout=8 rollout-tp=8 rollout-memory=0.25",
     "trinity.yaml",
     {"engine_num: 1\n", "tensor_parallel_size: 8", "utilization: 0.25"}},
    {"for=slime model=Qwen3-32B gpu=8xH100-80G dataset=x tp=8 cp=1",
     "launch.sh",
     {"in 55.3", "--sglang-mem-fraction-static 0.7", "gpus-per-engine 2\n"}},
    // One GPU would need 57 GiB of states and 56 GiB of logits.
    {"for=slime gpu=8xH100-80G context=32k dataset=x",
     "launch.sh",
     {"--global-batch-size 32\n", "Not predicted, a rule of thumb: ",
      "tensor-model-parallel-size 4\n", "context-parallel-size 1\n"}},
    {"for=slime gpu=8xH100-80G context=32k dataset=x tp=2",
     "launch.sh",
     {"--global-batch-size 32\n", "tensor-model-parallel-size 2\n", "context-parallel-size 2\n",
      "max-tokens-per-gpu 16384\n"}},
    {"for=slime model=Qwen3-0.6B gpu=8xH100-80G dataset=x",
     "launch.sh",
     {", under 63.28 GiB (80 % of the card).", "tensor-model-parallel-size 1\n",
      "context-parallel-size 1\n"}},
    {"for=slime model=Qwen3-32B gpu=8xH100-80G context=32k dataset=x",
     "launch.sh",
     {"79.59 GiB, not under 63.28 GiB", "tensor-model-parallel-size 8\n"}},
    {"for=verl gpu=8xH100-80G prompt=2k samples=4",
     "launch.sh",
     {"max_prompt_length=2048\n", "max_response_length=6144\n", "rollout.n=4\n"}},
    {"for=trinity gpu=4xH100-80G response=2k",
     "trinity.yaml",
     {"max_prompt_tokens: 6144", "max_response_tokens: 2048"}},
    {"for=slime gpu=8xH100-80G response=1k dataset=x tp=4 cp=1",
     "launch.sh",
     {"max-prompt-len 7168", "max-response-len 1024"}},
    {"for=trl task=dpo gpu=8xH100-80G batch=2 accum=3",
     "dpo.yaml",
     {"pairs a step: 48, which are 96 rows.", "Pairs; each is two rows, and 4 rows"}},
    {"for=trl task=reward gpu=8xH100-80G", "launch.sh", {"pairs a step: 8, which are 16 rows."}},
    {"for=trinity task=dpo dataset=x gpu=8xH100-80G batch=1",
     "trinity.yaml",
     {"Pairs; each is two rows, 64 in a step.\n  train_batch_size: 32", "use_dynamic_bsz: false",
      "max_token_len_per_gpu: 16384", "ppo_micro_batch_size_per_gpu: 2"}},
    {"for=trl model=Qwen3-VL-4B images=1 gpu=8xH100-80G",
     "sft.yaml",
     {"dataset_name: HuggingFaceH4/llava-instruct-mix-vsft", "max_length: null"}},
    {"for=trl task=dpo model=Qwen3-VL-4B images=1 gpu=8xH100-80G",
     "dpo.yaml",
     {"dataset_name: HuggingFaceH4/rlaif-v_formatted", "max_length: null"}},
    {"for=trl task=dpo model=Qwen3-VL-4B gpu=8xH100-80G",
     "dpo.yaml",
     {"dataset_name: trl-lib/ultrafeedback_binarized", "!max_length: null"}},
    {"for=trl model=gemma-3-4b-it gpu=8xH100-80G",
     "sft.yaml",
     {"dataset_name: trl-lib/Capybara", "!max_length: null"}},
    {"for=trl model=Qwen3-4B gpu=8xH100-80G attention=flash3",
     "sft.yaml",
     {"attn_implementation: flash_attention_3"}},
    {"for=trinity model=Qwen3-VL-4B gpu=4xH100-80G",
     "trinity.yaml",
     {"path: hiyouga/geometry3k", "image_key: images", "simple_mm_workflow", "!gsm8k"}},
    {"for=trinity task=sft dataset=x model=Qwen3-VL-4B gpu=8xH100-80G",
     "trinity.yaml",
     {"prompt_type: plaintext", "image_key: images"}},
    {"for=verl model=Qwen3-VL-4B gpu=8xH100-80G",
     "launch.sh",
     {"geo3k/train.parquet", "data.image_key=images\n", "!gsm8k"}},
    {"for=verl model=Qwen3-VL-4B gpu=8xH100-80G dataset=x.parquet",
     "launch.sh",
     {"data.train_files=x.parquet", "data.image_key=images\n"}},
    {"for=trl task=rloo gpu=H100-80G batch=3", "rloo.yaml", {"num_generations: 3"}},
    {"for=trl task=grpo gpu=8xH100-80G response=1k samples=2",
     "grpo.yaml",
     {"max_completion_length: 1024", "num_generations: 2"}},
};

// Comments are broken at spaces wherever they meet the margin.
static struct str unbroken(struct arena *a, struct str text)
{
    struct buf out = buf_in(a);
    while (text.n) {
        bool breaks = str_starts(text, STR("\n# "));
        buf_put(&out, breaks ? STR(" ") : str_slice(text, 0, 1));
        text = str_slice(text, breaks ? 3 : 1, text.n);
    }
    return buf_str(&out);
}

static void check_saying(struct arena *a, const struct saying *s)
{
    struct emit_files files = {0};
    struct error e = {0};
    struct str request = str_format(a, "context=8k %s%s", s->request,
                                    has_model(s->request) ? "" : " model=Qwen3-8B");
    if (!emits(&files, a, str_z(a, request), &e)) {
        test_failed(__FILE__, __LINE__, "%s: %s", s->request, e.message);
        return;
    }
    struct str text = unbroken(a, file_of(&files, s->file));
    for (ptrdiff_t i = 0, from = 0; i < COUNT_OF(s->parts) && s->parts[i]; i++) {
        bool absent = s->parts[i][0] == '!';
        struct str part = str_from(s->parts[i] + absent);
        ptrdiff_t at = place_in(absent ? text : str_slice(text, from, text.n), part);
        if ((at < 0) != absent)
            test_failed(__FILE__, __LINE__, "%s: %s %s '%s'", s->request, s->file,
                        absent ? "has" : "has no", s->parts[i] + absent);
        from += absent || at < 0 ? 0 : at + part.n;
    }
}

TEST(what_files_say)
{
    for (ptrdiff_t i = 0; i < COUNT_OF(sayings); i++)
        check_saying(test_arena(), &sayings[i]);
}

TEST(a_model_that_no_engine_holds_is_refused)
{
    struct arena *a = test_arena();
    struct emit_files files = {0};
    struct error e = {0};
    CHECK(!emits(&files, a, "for=verl model=Qwen3-235B-A22B gpu=8xH100-80G context=32k", &e));
    CHECK_STR(str_from(e.message),
              "generation does not fit: over 8 GPUs, the most that divide the model, bf16 weights "
              "and one sequence's keys and values take 56.21 GiB of each, and "
              "gpu_memory_utilization 0.6 leaves 43.46 GiB");
    CHECK_U64((uint64_t)error_exit_status(e.code), 2);
}

// Every name leads to one that the hub has.
TEST(models_as_the_hub_spells_them)
{
    static const char *const rows[][2] = {
        {"Qwen3-4B-Instruct-2507", "Qwen/Qwen3-4B-Instruct-2507"},
        {"qwen3-4b-thinking-2507", "Qwen/Qwen3-4B-Thinking-2507"},
        {"Qwen3-VL-4B", "Qwen/Qwen3-VL-4B-Instruct"},
        {"Qwen3-VL-4B-Thinking", "Qwen/Qwen3-VL-4B-Thinking"},
        {"Qwen/Qwen3-VL-30B-A3B", "Qwen/Qwen3-VL-30B-A3B-Instruct"},
        {"Llama-3.1-8B", "meta-llama/Llama-3.1-8B"},
        {"Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-8B-Instruct"},
        {"Llama-3.3-70B", "meta-llama/Llama-3.3-70B-Instruct"},
        {"Llama-2-7b", "meta-llama/Llama-2-7b-hf"},
        {"TinyLlama-1.1B", "TinyLlama/TinyLlama-1.1B-Chat-v1.0"},
        {"Mistral-7B", "mistralai/Mistral-7B-v0.3"},
        {"Mistral-Nemo-12B", "mistralai/Mistral-Nemo-Base-2407"},
        {"Mixtral-8x7B", "mistralai/Mixtral-8x7B-v0.1"},
        {"Phi-3-mini", "microsoft/Phi-3-mini-4k-instruct"},
        {"Phi-4-mini", "microsoft/Phi-4-mini-instruct"},
        {"OLMo-2-7B", "allenai/OLMo-2-1124-7B"},
        {"gemma-3-4b", "google/gemma-3-4b-pt"},
        {"gemma-3-4b-it", "google/gemma-3-4b-it"},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        struct arena *a = test_arena();
        struct settings s = settings_in(a);
        struct draft *j = NEW(a, struct draft, 1);
        struct error e = {0};
        struct str request = str_format(a, "for=trl context=1k gpu=H200 model=%s", rows[i][0]);
        CHECK(settings_read(&s, request, ' ', STR("test"), &e));
        struct job *job = NEW(a, struct job, 1);
        CHECK(job_resolve(job, a, &s, &e) && draft_from_job(j, a, job, &e));
        CHECK_STR(draft_text(j, "weights"), rows[i][1]);
    }
}

// Given both, they are the context.
TEST(prompt_and_response_are_a_context)
{
    struct arena *a = test_arena();
    struct emit_files files = {0};
    struct error e = {0};
    CHECK(emits(&files, a, "for=verl model=Qwen3-8B gpu=8xH100-80G prompt=1k response=3k", &e));
    CHECK(place_in(file_of(&files, "launch.sh"), STR("token_len_per_gpu=4096\n")) > 0);
    CHECK(!emits(&files, a, "for=verl model=Qwen3-8B gpu=8xH100-80G prompt=1k", &e));
    CHECK_STR(str_from(e.message), "no context is given; --context 32k is an example");
}

static struct str foreign_value(const struct settings *s, const char *key)
{
    const struct setting *item = settings_find_z(s, key);
    return item ? item->value : STR_NONE;
}

static const struct round_trip {
    const char *request, *files, *says;
    uint64_t processes;
} round_trips[] = {
    {"for=accelerate gpu=8xH100-80G cp=4", "accelerate.yaml",
     "strategy=fsdp2 precision=mixed cp=4 reshard=on", 8},
    {"for=accelerate gpu=8xH100-80G checkpointing=off reshard=off precision=bf16",
     "accelerate.yaml", "strategy=fsdp2 precision=bf16 reshard=off", 8},
    {"for=accelerate gpu=8xH100-80G strategy=fsdp1 offload=all", "accelerate.yaml",
     "strategy=fsdp1 precision=mixed offload=all", 8},
    {"for=accelerate gpu=4xH100-80G strategy=ddp precision=autocast", "accelerate.yaml",
     "strategy=ddp precision=autocast", 4},
    {"for=accelerate gpu=H200", "accelerate.yaml", "strategy=single precision=bf16", 1},
    {"for=accelerate gpu=2x8xH100-80G strategy=zero3 sp=2 accum=4 offload=optimizer",
     "accelerate.yaml deepspeed.json",
     "strategy=zero3 precision=mixed sp=2 accum=4 offload=optimizer", 16},
    {"for=accelerate gpu=8xH100-80G strategy=zero3 offload=all nvme=/x",
     "accelerate.yaml deepspeed.json", "strategy=zero3 offload=all nvme=/x", 8},
    {"for=deepspeed gpu=8xH100-80G strategy=zero3 batch=2 accum=4 offload=all", "deepspeed.json",
     "strategy=zero3 precision=mixed batch=2 accum=4 offload=all", 0},
    {"for=deepspeed gpu=8xH100-80G strategy=zero1", "deepspeed.json", "strategy=zero1", 0},
    {"for=trinity gpu=4xA100-80G sp=2 offload=all save-hf=never", "trinity.yaml",
     "strategy=fsdp2 sp=2 offload=all batch=2 context=8192 model=Qwen/Qwen3-8B save-hf=never", 4},
    {"for=trinity gpu=2xA100-80G verl=0.5 strategy=fsdp1 task=capacity batch=1 "
     "offload=optimizer",
     "trinity.yaml", "strategy=fsdp1 sp=1 offload=optimizer batch=1 context=8192", 2},
    {"for=trinity gpu=4xH100-80G task=opd teacher=Qwen3-32B rollout=2", "trinity.yaml",
     "strategy=fsdp1 batch=2", 4},
    {"for=trl gpu=H100-80G task=distill teacher=Qwen3-32B", "distillation.yaml",
     "task=distill teacher=Qwen/Qwen3-32B precision=autocast batch=1", 0},
    {"for=trl gpu=H100-80G attention=eager", "sft.yaml", "attention=eager task=sft", 0},
    {"for=trl gpu=H100-80G attention=flash2 batching=padded", "sft.yaml", "attention=flash2", 0},
    {"for=axolotl gpu=H100-80G loss=liger layer-kernels=liger", "axolotl.yaml",
     "loss=liger layer-kernels=liger", 0},
    {"for=axolotl gpu=8xH100-80G strategy=fsdp2 save=sharded load-once=off", "axolotl.yaml",
     "save=sharded load-once=off", 0},
    {"for=axolotl gpu=8xH100-80G strategy=fsdp2", "axolotl.yaml", "save=full", 0},
    {"for=llamafactory gpu=H100-80G loss=liger layer-kernels=liger", "llamafactory.yaml",
     "loss=liger layer-kernels=liger", 0},
    {"for=axolotl gpu=H100-80G attention=eager", "axolotl.yaml", "attention=eager", 0},
    {"for=llamafactory gpu=H100-80G attention=flash2", "llamafactory.yaml", "attention=flash2", 0},
    {"for=accelerate gpu=2x8xH100-80G replicate=2", "accelerate.yaml", "strategy=fsdp2 replicate=2",
     16},
    {"for=accelerate gpu=2x8xH100-80G replicate=2 cp=2", "accelerate.yaml", "replicate=2 cp=2", 16},
    {"for=accelerate gpu=2x8xH100-80G strategy=fsdp1 replicate=2", "accelerate.yaml",
     "strategy=fsdp1 replicate=2", 16},
    {"for=accelerate gpu=8xH100-80G load-once=off save=full", "accelerate.yaml",
     "strategy=fsdp2 load-once=off", 8},
    {"for=trinity gpu=8xH100-80G task=sft dataset=x strategy=fsdp2 reshard=off checkpointing=off",
     "trinity.yaml", "strategy=fsdp2 reshard=off checkpointing=off", 8},
};

static void read_files(struct settings *read, struct foreign *f, const struct emit_files *files,
                       const char *names)
{
    struct error e = {0};
    for (ptrdiff_t i = 0; i < files->count; i++) {
        struct settings flat = settings_in(read->arena);
        if (words_have(names, ' ', files->items[i].name))
            CHECK(flatten_file(&flat, &files->items[i], &e) && foreign_read(read, f, &flat, &e));
    }
}

static void check_round_trip(struct arena *a, const struct round_trip *r)
{
    struct emit_files files = {0};
    struct error e = {0};
    struct settings read = settings_in(a), wanted = settings_in(a), given = settings_in(a);
    struct foreign f = foreign_in(a);
    struct str request = str_format(a, "model=Qwen3-8B context=8k %s", r->request);
    CHECK(emits(&files, a, str_z(a, request), &e));
    read_files(&read, &f, &files, r->files);
    CHECK(foreign_conclude(&read, &f, &given, &e) && settings_check(&read, &e));
    CHECK_STR(str_from(e.message), "");
    CHECK(f.format);
    CHECK_U64(f.processes, r->processes);
    CHECK(settings_read(&wanted, str_from(r->says), ' ', STR_NONE, &e));
    for (ptrdiff_t i = 0; i < wanted.count; i++)
        CHECK_STR(foreign_value(&read, str_z(a, wanted.items[i].key)),
                  str_z(a, wanted.items[i].value));
}

// What is emitted says, read as a request, what it was emitted for.
TEST(emitted_files_can_be_read_back)
{
    for (ptrdiff_t i = 0; i < COUNT_OF(round_trips); i++)
        check_round_trip(test_arena(), &round_trips[i]);
}
