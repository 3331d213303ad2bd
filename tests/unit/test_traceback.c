// Exceptions in logs: what tracebacks lead to, those that carry others, refusals of libraries, and
// data that only quotes messages.
#include <string.h>

#include "core/base/buf.h"
#include "tests/support/logs.h"

// Every exception that a traceback leads to is one, whatever its class.
TEST(tracebacks_lead_to_exceptions)
{
    static const struct {
        const char *kind, *text;
    } rows[] = {
        {"exception", HEAD FRAME "__main__.Odd: it broke\n"},
        {"exception", HEAD FRAME "__main__.Odd\n"},
        {"exception", HEAD FRAME "FloatingPointError: the loss is nan\n"},
        {"exception", HEAD FRAME "TimeoutError\n"},
        {"-", HEAD FRAME "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"},
        {"exception", "(W pid=1) 09:12:33 [ERROR] " HEAD "(W pid=1)   File \"a.py\", line 3, in f\n"
                      "(W pid=1)     g()\n(W pid=2) x.Other: no\n(W pid=1) x.Odd: it broke\n"},
        {"exception", "2025-07-03T14:20:51.565839352Z " HEAD
                      "2025-07-03T14:20:51.56584Z   File \"a.py\", line 3, in f\n"
                      "2025-07-03T14:20:51.6Z x.Odd: it broke\n"},
        {"exception", "^C 5%|# | 1/10 [00:01<00:02]" HEAD FRAME "queue.Empty\n"},
        {"interrupted", "^C" HEAD FRAME "KeyboardInterrupt\n"},
        {"network", HEAD FRAME "requests.exceptions.ConnectionError: ('Connection aborted.', "
                               "ConnectionResetError(104, 'Connection reset by peer'))\n"},
        {"network", HEAD FRAME "huggingface_hub.errors.HfHubHTTPError: 504 Server Error\n"},
        {"child-failed", HEAD FRAME "subprocess.CalledProcessError: Command '['x']' returned\n"},
        {"ray-worker-lost", HEAD FRAME "ray.exceptions.ActorDiedError: The actor died.\n"},
        {"ray-worker-lost", HEAD FRAME "ray.exceptions.WorkerCrashedError: The worker died\n"},
        {"killed", HEAD FRAME "torch.multiprocessing.spawn.ProcessExitedException: process 1 "
                              "terminated with signal SIGKILL\n"},
        {"missing-module", HEAD FRAME "ModuleNotFoundError: No module named 'x'\n"},
        {"-", HEAD FRAME "and then nothing\nLoss: 5\n"},
        {"-", "Exception ignored in: <function F.__del__>\n" HEAD FRAME "TypeError: no\n"},
        {"-", "Traceback (most recent call last):\n"},
        {"-", "09:12:3x " HEAD "09:12:3y   File \"a.py\", line 3, in f\n09:12:3y x.Odd: no\n"},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        struct doctor_result r = read_text(test_arena(), rows[i].text);
        if (strcmp(kind_of(&r), rows[i].kind) != 0)
            test_failed(__FILE__, __LINE__, "row %td is %s", i, kind_of(&r));
        if (r.cause && !str_is(r.cause->raised, "File \"a.py\", line 3, in f"))
            test_failed(__FILE__, __LINE__, "row %td is raised in %.*s", i,
                        STR_ARGS(r.cause->raised));
    }
}

// As the libraries print them, f-strings filled in.
static const struct {
    const char *remedy, *text;
} refusals[] = {
    // accelerate 1.15.0, state.py:1000 and :1008
    {"fsdp_version: 2",
     "ValueError: `cp_size > 1` specified in the `parallelism_config`, but no `fsdp_plugin` "
     "was "
     "provided. We need a `fsdp_plugin` to use context parallelism with `cp_backend=torch`, as "
     "we also shard the model across the device mesh to save more memory\n"},
    {"fsdp_version: 2", "[rank1]: ValueError: Using `cp_size>1` requires FSDP2, but the provided "
                        "`fsdp_plugin` is using FSDP1. \n"},
    // accelerate 1.15.0, big_modeling.py:821 and :779
    {"sliding window", "ValueError: Context parallelism does not support attention layers of "
                       "type ['sliding_attention'] (model Gemma3ForCausalLM). Context "
                       "parallelism can only express full causal attention\n"},
    {"recurrent", "ValueError: Sequence parallelism does not support attention layers of type "
                  "['linear_attention'] (model Qwen3NextForCausalLM).\n"},
    // accelerate 1.15.0, parallelism_config.py:331, :338, :374, :396, :320 and :326
    {"cp_size: 1 or sp_size: 1",
     "ValueError: Context Parallelism (CP) and Sequence Parallelism (SP) are mutually "
     "exclusive. Got cp_size=2 and sp_size=2. Please set either cp_size=1 or sp_size=1.\n"},
    {"dp_shard_size", "ValueError: Tensor/Context parallelism (tp/cp_size > 1) cannot be used "
                      "with pure data parallelism (dp_replicate_size > 1 and dp_shard_size == "
                      "1). Please set dp_shard_size > 1\n"},
    {"num_processes", "ValueError: ParallelismConfig total_size (16) does not match "
                      "num_processes (8). Please adjust dp_replicate_size/ dp_shard_size\n"},
    {"FSDP2 for cp_size",
     "ValueError: ParallelismConfig is only compatible DistributedType.FSDP (version 2) or "
     "DistributedType.Multi{Device} or DistributedType.DEEPSPEED, but got NO.\n"},
    {"cp_backend: torch", "ValueError: cp_backend must be one of ['torch'], but got deepspeed\n"},
    {"sp_backend: deepspeed",
     "ValueError: sp_backend must be one of ['deepspeed'], but got torch\n"},
    // accelerate 1.15.0, utils/dataclasses.py:2240, :2248, :2300 and :2283; accelerator.py:2398
    {"torch that the message",
     "ValueError: FSDP2-based Context parallelism is only available in PyTorch 2.6.0 and later "
     "versions. Please upgrade your PyTorch version.\n"},
    {"allgather", "ValueError: Invalid cp_comm_strategy: ring. Must be one of 'allgather' or "
                  "'alltoall'.\n"},
    {"sp_attn_implementation",
     "ValueError: Invalid sp_attn_implementation: eager. 'eager' and 'flex_attention' are not "
     "supported with sequence parallelism.\n"},
    {"sp_seq_length", "ValueError: when `sp_seq_length_is_variable` is `False` `sp_seq_length` "
                      "must be provided either through the constructor or the environment "
                      "variable PARALLELISM_CONFIG_SP_SEQ_LENGTH\n"},
    {"sp_backend: deepspeed",
     "ValueError: In order to use the configured sp_size=2 with DeepSpeed, you need to "
     "configure sp_backend='deepspeed', yet you configured it to be sp_backend='x'.\n"},
    // transformers 5.17.0, trainer.py:2340, :2383 and :747
    {"attn_implementation: sdpa", "ValueError: Context parallelism is supported only with SDPA "
                                  "attention, you are using flash_attention_2.\n"},
    {"attention_mask", "ValueError: Context parallelism only supports causal attention masks. "
                       "The provided attention_mask is not causal.\n"},
    {"accelerate that", "ImportError: ParallelismConfig requires accelerate>=1.12.0). Please "
                        "upgrade accelerate to use this feature.\n"},
    // trl 1.16.0, trainer/sft_trainer.py:1157 and grpo_config.py:1072
    {"packing: false", "ValueError: Packing is not compatible with context parallelism "
                       "(`cp_size > 1`). Packing relies on a block-diagonal attention mask\n"},
    {"sp_size: 1", "ValueError: GRPOTrainer does not support sequence-dim parallelism "
                   "(`parallelism_config.cp_size > 1` or `parallelism_config.sp_size > 1`) "
                   "yet.\n"},
    // torch 2.11.0, distributed/tensor/experimental/_context_parallel/_load_balancer.py:148
    {"2 x cp_size", HEAD "  File \"_load_balancer.py\", line 148, in _generate_indices\n"
                         "    assert seq_length % (world_size * 2) == 0\n"
                         "           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\nAssertionError\n"},
    // and _attention.py:395, :398, :692, :922, :1214, :1545, :1551 and :1692
    {"use_cache", "NotImplementedError: is_causal requires the same query and context sequence "
                  "lengths\n"},
    {"is_causal", "RuntimeError: Load balancing requires `is_causal=True`.\n"},
    {"is_causal", "NotImplementedError: attn_bias is not supported yet\n"},
    {"flash", "NotImplementedError: CP only supports flash attention and memory efficient "
              "attention now.\n"},
    {"BLOCK_SIZE", "NotImplementedError: Q_LEN 1000 is not divisible by CP mesh world size 4 * "
                   "BLOCK_SIZE 128. This is not supported yet. \n"},
    {"buffer_seq_dims", "ValueError: `seq_dims` must have the same number of elements as "
                        "`buffers`.\n"},
    {"no_restore_buffers", "ValueError: `no_restore_buffers` must be a subset of `buffers`.\n"},
    {"allgather", "NotImplementedError: Context Parallel does not support using ring for kv "
                  "shards rotation\n"},
};

TEST(refusals_of_context_parallelism)
{
    for (ptrdiff_t i = 0; i < COUNT_OF(refusals); i++) {
        struct doctor_result r = read_text(test_arena(), refusals[i].text);
        bool right = r.cause && strcmp(r.cause->kind->name, "context-parallel") == 0 &&
                     r.cause->kind->class == DOCTOR_CONFIGURATION && r.cause->remedy;
        if (!right || !text_has(str_from(r.cause->remedy), refusals[i].remedy))
            test_failed(__FILE__, __LINE__, "row %td is %s", i, kind_of(&r));
    }
}

// The exception of another process is printed after the one that carries it.
TEST(carried_exceptions)
{
    static const struct {
        const char *said, *text;
    } rows[] = {
        {"__main__.Odd: it broke",
         HEAD FRAME "ray.exceptions.RayTaskError(Odd): ray::f() (pid=1, ip=2)\n" FRAME
                    "__main__.Odd: it broke\n"},
        {"__main__.Odd: it broke",
         HEAD FRAME "multiprocessing.pool.RemoteTraceback: \n\"\"\"\n" HEAD FRAME
                    "__main__.Odd: it broke\n\"\"\"\n"},
        {"__main__.Odd: it broke",
         HEAD FRAME "torch.multiprocessing.spawn.ProcessRaisedException: \n\n-- Process 0 "
                    "terminated with the following error:\n" HEAD FRAME "__main__.Odd: it broke\n"},
        {"__main__.Odd: it broke", HEAD FRAME "__main__.Odd: it broke\n\nDuring handling of the "
                                              "above exception, another exception occurred:\n"
                                              "\n" HEAD FRAME "x.Other: went too\n"},
        {"Odd: it broke",
         "\xE2\x95\xAD\xE2\x94\x80 Traceback (most recent call last) \xE2\x94\x80\n"
         "\xE2\x94\x82 a.py:3 in f\n\xE2\x95\xB0\xE2\x94\x80\nOdd: it broke\n"},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        struct doctor_result r = read_text(test_arena(), rows[i].text);
        if (!r.cause || !str_is(r.cause->text, rows[i].said))
            test_failed(__FILE__, __LINE__, "row %td is %.*s", i,
                        STR_ARGS(r.cause ? r.cause->text : STR("nothing")));
    }
}

// Ranks print their tracebacks at once, loggers put times before the lines.
TEST(tracebacks_in_each_others_lines)
{
    struct arena *a = test_arena();
    struct buf text = buf_in(a);
    static const char *const lines[] = {"Traceback (most recent call last):",
                                        "  File \"a.py\", line 3, in f", "    g()", "m.Odd: it"};
    for (int line = 0; line < 4; line++)
        for (int rank = 0; rank < 64; rank++)
            buf_printf(&text, "[rank%d]: 09:12:%d,%d ERROR %s\n", rank, 10 + rank % 50 + line,
                       100 + line, lines[line]);
    struct doctor_result r = read_pieces(a, buf_str(&text), text.n);
    CHECK_STR(str_from(kind_of(&r)), "exception");
    CHECK_U64(r.cause->line, 3 * 64 + 1);
    CHECK_U64((uint64_t)r.cause->rank, 0);
    CHECK_U64(r.cause->ranks, 64);
    CHECK_STR(r.cause->rank_list, "0-63");
    CHECK_U64(r.cause->count, 1);
    CHECK_U64(r.findings[r.count - 1].count, 64 - 8); // those without a finding of their own
    CHECK(r.findings[r.count - 1].rank == -1);
}

// What was caught long before is another story.
TEST(an_exception_long_before)
{
    struct arena *a = test_arena();
    for (int lines = 200; lines <= 400; lines += 200) {
        struct buf text = buf_in(a);
        buf_put_z(&text, HEAD FRAME "ImportError: no triton\n");
        buf_repeat(&text, '\n', lines);
        buf_put_z(&text, HEAD FRAME "m.Odd: it broke\n");
        struct doctor_result r = read_pieces(a, buf_str(&text), text.n);
        CHECK_STR(str_from(kind_of(&r)), lines < 300 ? "missing-module" : "exception");
    }
}

#define QUOTED "CUDA out of memory. Tried to allocate 2.00 GiB"

TEST(samples_of_data_are_no_messages)
{
    static const char *const data[] = {
        "{'messages': [{'role': 'user', 'content': \"RuntimeError: " QUOTED "\"}]}",
        "{\"text\": \"torch.OutOfMemoryError: " QUOTED "\"}",
        "INFO request 1: prompt: 'How to fix " QUOTED "', params: SamplingParams(",
        "<|im_start|>user RuntimeError: " QUOTED "<|im_end|>",
        "['hello', 'RuntimeError: " QUOTED "']",
        "WARNING a low ulimit causes errors like `OSError: [Errno 24] Too many open files`.",
        "<|im_start|>user\nI see this:\nRuntimeError: " QUOTED "\nHelp!<|im_end|>\n"
        "<|im_start|>assistant\nSmaller batches.<|im_end|>\n",
        "<|im_start|>user\nWhy?\n" HEAD FRAME "RuntimeError: " QUOTED "\n<|im_end|>\n",
        "When I train it I get RuntimeError: " QUOTED " (GPU 0)",
        "{'instruction': 'It\\'s broken\\nOSError: [Errno 28] No space left on device'}",
    };
    static const char *const messages[] = {
        "{\"log\":\"[rank0]: RuntimeError: " QUOTED "\\n\",\"stream\":\"stderr\"}",
        "{\"level\": \"error\", \"message\": \"" QUOTED "\"}",
        "ERROR:root:OutOfMemoryError('" QUOTED "')",
        "the model's batch is too large: " QUOTED,
        "terminate called after throwing\n  what():  " QUOTED,
        "File \"a.py\" failed: RuntimeError: " QUOTED,
        "WARNING:root:" QUOTED,
        "prompt <|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nRuntimeError: " QUOTED
        "\nprompt <|im_start|>user\nHi<|im_end|>\n",
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(data); i++) {
        struct doctor_result r = read_text(test_arena(), data[i]);
        if (r.count)
            test_failed(__FILE__, __LINE__, "'%s' counts as %s", data[i], kind_of(&r));
    }
    for (ptrdiff_t i = 0; i < COUNT_OF(messages); i++) {
        struct doctor_result r = read_text(test_arena(), messages[i]);
        if (strcmp(kind_of(&r), "gpu-memory") != 0)
            test_failed(__FILE__, __LINE__, "'%s' is %s", messages[i], kind_of(&r));
    }
}

TEST(a_sample_longer_than_is_looked_at)
{
    struct arena *a = test_arena();
    struct buf text = buf_in(a);
    buf_put_z(&text, "{'text': 'A question.");
    buf_repeat(&text, 'x', 9000);
    buf_put_z(&text, "\\nRuntimeError: " QUOTED "'}\n");
    struct doctor_result r = read_pieces(a, buf_str(&text), text.n);
    CHECK_U64((uint64_t)r.count, 0);
}
