// A library never ends its host: hard questions of every command, in blocks of every size. The
// reply to each is the one that it has in FATHOM_MEMORY, or says that there is too little memory.
#include <stdlib.h>
#include <string.h>

#include "core/command/command.h"
#include "fathom/fathom.h"
#include "tests/support/t.h"

enum { NO_MEMORY = 70, SMALLEST = 1 << 10, LARGEST = 1 << 26 };

#define BIG "model=Qwen3-8B\ngpu=128x8xH100-80G\n"

#define CONFIG(layers, width, words)                                                     \
    "model=x\nconfig.model_type=llama\nconfig.num_attention_heads=1\nconfig.num_hidden_" \
    "layers=" layers "\nconfig.hidden_size=" width "\nconfig.intermediate_size=" width   \
    "\nconfig.vocab_size=" words "\n"
#define LONGEST "context=268435456\n"

static const char *const hard[] = {
    "command=predict\nrecipe=trinity\naccum=65536\ncontext=262144\nmax-token-len=262144\n" BIG,
    "command=predict\nrecipe=trinity\nfused-kernels=on\nmax-token-len=268435456\n" LONGEST BIG,
    "command=predict\nrecipe=trinity\nentropy-saving=on\nmax-token-len=268435456\n" LONGEST BIG,
    "command=predict\nrecipe=trinity\nentropy-saving=on\nbatch=1024\ngpu=H200\n" LONGEST CONFIG(
        "1", "64", "100"),
    "command=predict\nrecipe=transformers\nbatch=1024\naccum=65536\ngpu=8xH200\n" LONGEST CONFIG(
        "1", "64", "100"),
    "command=predict\nrecipe=transformers\nstrategy=fsdp2\ncp=1024\ncontext=1048576\n"
    "gpu=128x8xH200\n" CONFIG("200", "1024", "32000"),
    "command=predict\ngpu=8xH200\ncontext=8k\n" CONFIG("1024", "1024", "32000"),
    "command=predict\nrecipe=trinity\naccum=65536\ncontext=8k\n" BIG,
    "command=predict\nrecipe=transformers\nstrategy=fsdp2\ncontext=1048576\ncp=1024\n"
    "cp-rank=512\n" BIG,
    "command=predict\ncontext=8k\nbatch=65536\nexplain=on\n" BIG,
    "command=max\nmodel=Qwen3-0.6B,Qwen3-4B\ngpu=1,2xA100-80G\nsp=1,2\nlayers=4\ngrid=trinity",
    "command=guide\nmodel=Qwen3-0.6B\ngpu=1,2xA100-80G\nlayers=4",
    "command=plan\nrecipe=trl\nmodel=Qwen3-0.6B\nlayers=2\ngpu=RTX4090\ncontext=1k\nglobal-batch=2",
    "command=batch\nrecipe=trl\nmodel=Qwen3-0.6B\nlayers=2\ngpu=RTX4090\ncontext=1k\nglobal-batch="
    "2",
    "command=serve\nengine=vllm\nmodel=Qwen3-30B-A3B\ngpu=2xH100-80G\ntp=2",
    "command=split\nmodel=Qwen3-0.6B\nteacher=Qwen3-8B\ngpu=3xH100-80G\nprompt=256\nresponse=256",
    "command=probe\nmodel=Qwen3-8B\ngpu=H200\ndry-run=on",
    "command=models\nmodel=Qwen3-30B-A3B",
    "command=models",
    "command=gpus",
    "command=show",
    "command=emit\ncontext=8k\nfor=trinity\n" BIG,
    "command=replay\nfile=none",
    "command=doctor\nfile=none",
    "command=help",
    "command=man",
    "command=completion\nshell=zsh",
    "command=page",
};

static struct str ask(int *status, char *end, ptrdiff_t bytes, const char *question)
{
    struct fathom_reply reply;
    *status = fathom_ask(end - bytes, (size_t)bytes, question, strlen(question), &reply);
    return (struct str){reply.json, (ptrdiff_t)reply.json_bytes};
}

static bool is_object(struct str json)
{
    return json.n > 3 && json.p[0] == '{' && json.p[json.n - 2] == '}' &&
           json.p[json.n - 1] == '\n';
}

static bool is_refusal(int status, struct str json)
{
    return status == NO_MEMORY &&
           str_starts(json, STR("{\n  \"error\": {\n    \"code\": \"no_memory\""));
}

static void in_every_size(char *end, const char *question)
{
    int status, here;
    ptrdiff_t step = str_starts(str_from(question), STR("command=predict")) ? 16 : 2;
    struct str whole = ask(&status, end, (ptrdiff_t)FATHOM_MEMORY, question);
    if (status == NO_MEMORY || !is_object(whole))
        test_failed(__FILE__, __LINE__, "'%s' exits with %d", question, status);
    struct str wanted = str_copy(test_arena(), whole);
    for (ptrdiff_t bytes = SMALLEST; bytes <= LARGEST; bytes *= step) {
        struct str json = ask(&here, end, bytes, question);
        CHECK(is_object(json));
        if (!is_refusal(here, json) && (here != status || !str_equal(json, wanted)))
            test_failed(__FILE__, __LINE__, "'%s' differs in %td bytes", question, bytes);
    }
}

TEST(answers_or_refuses_in_every_block)
{
    char *block = malloc(FATHOM_MEMORY);
    for (ptrdiff_t i = 0; i < COUNT_OF(hard); i++)
        in_every_size(block + FATHOM_MEMORY, hard[i]);
    free(block);
}

TEST(every_command_is_asked)
{
    struct arena *a = test_arena();
    for (ptrdiff_t i = 0; i < command_count; i++) {
        struct str wanted = str_format(a, "command=%s\n", commands[i].name);
        bool asked = false;
        for (ptrdiff_t j = 0; j < COUNT_OF(hard); j++) {
            struct str line = str_format(a, "%s\n", hard[j]);
            asked |= str_starts(line, wanted);
        }
        CHECK(asked);
    }
}

TEST(no_memory_at_all)
{
    char block[1] = {0};
    struct fathom_reply reply;
    CHECK_U64((uint64_t)fathom_ask(NULL, 0, "command=models", 14, &reply), NO_MEMORY);
    CHECK(is_object((struct str){reply.json, (ptrdiff_t)reply.json_bytes}));
    CHECK_U64((uint64_t)fathom_ask(block, SIZE_MAX, "command=models", 14, &reply), NO_MEMORY);
    CHECK_U64((uint64_t)fathom_ask(block, 1, "command=models", SIZE_MAX, &reply), NO_MEMORY);
}

static struct fathom_answer about(int *status, const char *question, struct str document)
{
    struct fathom_question q = {question, strlen(question), document.p, (size_t)document.n};
    struct fathom_answer out;
    char *block = test_arena()->begin;
    *status = fathom_ask_about(block, (size_t)(test_arena()->end - block), &q, &out);
    return out;
}

static bool says(const struct fathom_answer *a, const char *what)
{
    struct str text = {a->reply.json, (ptrdiff_t)a->reply.json_bytes};
    for (; text.n; text = str_slice(text, 1, text.n))
        if (str_starts(text, str_from(what)))
            return true;
    return false;
}

TEST(logs_and_histories_are_read)
{
    int status;
    struct fathom_answer a = about(
        &status, "command=doctor\nfile=train.log",
        STR("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 218.96 GiB\n"));
    CHECK_U64((uint64_t)status, 0);
    CHECK(says(&a, "\"kind\": \"gpu-memory\""));
    a = about(&status, "command=replay\nfile=a.trace",
              STR("segment_alloc 1000000 2097152 0\nalloc 1000000 512 0\n"));
    CHECK_U64((uint64_t)status, 0);
    CHECK(says(&a, "\"allocated_bytes\": 512"));
    a = about(&status, "command=doctor\nfile=train.log", STR_NONE);
    CHECK_U64((uint64_t)status, 2);
    CHECK(says(&a, "logs are read by the program"));
}

TEST(files_come_with_the_answer)
{
    int status;
    struct fathom_answer a = about(&status,
                                   "command=predict\nmodel=Qwen3-0.6B\ngpu=H200\ncontext=1k\n"
                                   "layers=2\ntimeline=t.json\nsnapshot=s.pickle",
                                   STR_NONE);
    CHECK_U64((uint64_t)status, 0);
    CHECK_U64(a.file_count, 2);
    struct str path = {a.files[1].path, (ptrdiff_t)a.files[1].path_bytes};
    struct str timeline = {a.files[0].content, (ptrdiff_t)a.files[0].content_bytes};
    CHECK(str_is(path, "s.pickle"));
    CHECK(str_starts(timeline, STR("{\n  \"points\": ")));
    a = about(&status, "command=predict\nmodel=none\ntimeline=t.json", STR_NONE);
    CHECK_U64(a.file_count, 0);
}
