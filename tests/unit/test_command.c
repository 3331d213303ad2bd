// The library's door and the tables behind it.
#include <stdlib.h>
#include <string.h>

#include "core/command/command.h"
#include "fathom/fathom.h"
#include "tests/support/t.h"

static struct str ask(int wanted_status, const char *question)
{
    struct arena *a = test_arena();
    static char *memory;
    if (!memory)
        memory = malloc(FATHOM_MEMORY);
    struct fathom_reply reply;
    int status = fathom_ask(memory, FATHOM_MEMORY, question, strlen(question), &reply);
    if (status != wanted_status)
        test_failed(__FILE__, __LINE__, "'%s' exits with %d", question, status);
    struct str copy = str_copy(a, (struct str){reply.json, (ptrdiff_t)reply.json_bytes});
    return copy;
}

static bool contains(struct str s, const char *part)
{
    return strstr(s.p, part) != NULL;
}

TEST(every_setting_has_one_row)
{
    ptrdiff_t rows = 0;
    for (const struct setting_def *def = setting_def_next(NULL); def; def = setting_def_next(def)) {
        rows++;
        if (setting_def_find(str_from(def->name)) != def)
            test_failed(__FILE__, __LINE__, "%s is there twice", def->name);
    }
    CHECK(rows > 100 && setting_def_find(STR("topic")));
}

TEST(questions_and_answers)
{
    static const struct {
        int status;
        const char *question, *answer;
    } rows[] = {
        {0, "command=models\nmodel=Qwen3-8B\n", "\"total\": 8190735360"},
        {0, "command=gpus\ngpu=4x8xH200\n", "\"gpus\": 32"},
        {0, "command=show\nmodel=Qwen3-8B\ngpu=H200", "\"hardware\""},
        {0, "command=predict\nmodel=Qwen3-8B\ngpu=8xH200\ncontext=32k", "\"fits\": true"},
        {1,
         "command=predict\nmodel=Llama-3.1-405B\ngpu=16x8xH100-80G\ncontext=1M\nloss=chunked:512\n"
         "checkpointing=off\naccum=64",
         "\"fits\": false"},
        {0, "command=max\nmodel=Qwen3-0.6B\ngpu=H200\nlayers=2\ngrid=trinity", "\"max_context\": "},
        {0, "command=max\nmodel=Qwen3-0.6B\ngpu=1,2xH200\nlayers=2\ngrid=64k", "\"cells\": ["},
        {1, "command=max\nmodel=Qwen3-8B\ngpu=L4", "\"max_context\": 0"},
        {0, "command=guide\nmodel=Qwen3-0.6B\ngpu=2xH200\nlayers=1\nlengths=4k",
         "\"config\": \"vanilla\""},
        {0, "command=help\n", "\"commands\""},
        {0, "command=completion\nshell=fish", "complete -c fathom"},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++)
        if (!contains(ask(rows[i].status, rows[i].question), rows[i].answer))
            test_failed(__FILE__, __LINE__, "'%s' does not say '%s'", rows[i].question,
                        rows[i].answer);
}

TEST(bad_questions)
{
    static const char *const rows[][2] = {
        {"", "there is no command ''"},
        {"command=modles", "did you mean 'models'?"},
        {"command=models\nmodel=Qwen9", "\"code\": \"bad_input\""},
        {"command=completion", "completion needs a shell"},
        {"command=doctor\nfile=x.log", "logs are read by the program"},
        {"command=gpus\ngpu=auto", "auto needs the machine itself"},
        {"command=models\nfoo", "key=value"},
        {"command=gpus\nmodel=Qwen3-8B", "'gpus' takes no model"},
        {"command=models\nmodel=a\nmodel=b", "model is given twice"},
        {"command=models\nlayers=3", "layers says nothing without a model"},
        {"command=replay", "replay needs a file"},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++)
        if (!contains(ask(2, rows[i][0]), rows[i][1]))
            test_failed(__FILE__, __LINE__, "'%s' does not say '%s'", rows[i][0], rows[i][1]);
}

TEST(every_setting_of_every_command_is_in_the_table)
{
    for (ptrdiff_t i = 0; i < command_count; i++) {
        const struct command *c = &commands[i];
        CHECK(c->summary && c->description && c->answer && c->examples[0].arguments);
        CHECK(!c->operand || command_takes(c, str_from(c->operand)));
        struct str rest =
            str_format(test_arena(), "%s %s", c->settings, c->without ? c->without : "");
        rest = str_trim(rest);
        while (rest.n) {
            struct str_cut cut = str_cut(rest, ' ');
            if (!setting_def_find(cut.head))
                test_failed(__FILE__, __LINE__, "%s takes '%.*s'", c->name, STR_ARGS(cut.head));
            rest = cut.tail;
        }
    }
}

static bool library_refuses(const struct command *c)
{
    struct answer a = {0};
    struct query q = {0};
    struct error e = {0};
    return !c->answer(&a, &q, &e) && e.code == ERROR_UNSUPPORTED;
}

// Who asks for a store needs a host; what a host answers the library cannot.
TEST(a_row_says_what_it_needs_of_the_host)
{
    for (ptrdiff_t i = 0; i < command_count; i++) {
        const struct command *c = &commands[i];
        CHECK(((c->host & (HOST_STORE | HOST_TRIALS)) != 0) == command_takes(c, STR("store")));
        CHECK(!(c->host & (HOST_TRIALS | HOST_PAGE)) || library_refuses(c));
    }
}
