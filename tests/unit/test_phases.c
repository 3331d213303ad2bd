// What a run was at when it died: the frames of the traceback that died, and where it has none that
// tell, what the log said before.
#include <string.h>

#include "core/base/buf.h"
#include "tests/support/logs.h"

#define OUT "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"

static const char *phase_of(const struct doctor_result *r)
{
    return r->cause && r->cause->phase ? doctor_phases[r->cause->phase].name : "-";
}

static void check_phase_in(struct arena *a, const char *phase, const char *text, int line)
{
    struct doctor_result r = read_text(a, text);
    if (strcmp(phase_of(&r), phase) != 0)
        test_failed(__FILE__, line, "'%s' is %s, not %s", text, phase_of(&r), phase);
}

static void check_phase(const char *phase, const char *text, int line)
{
    check_phase_in(test_arena(), phase, text, line);
}

// Frames as "file:function", from the first to the last.
static const char *traceback_of(struct arena *a, const char *frames)
{
    struct buf b = buf_in(a);
    struct words w = words_of(frames, ' ');
    buf_put_z(&b, HEAD);
    while (words_next(&w)) {
        struct str_cut c = str_cut(w.word, ':');
        buf_printf(&b, "  File \"/lib/%.*s\", line 7, in %.*s\n    f()\n", STR_ARGS(c.head),
                   STR_ARGS(c.tail));
    }
    buf_put_z(&b, OUT);
    return str_z(a, buf_str(&b));
}

TEST(frames_tell_the_phase)
{
    static const struct {
        const char *phase, *frames;
    } rows[] = {
        {"-", "a.py:main b.py:forward"},
        {"forward", "transformers/trainer.py:training_step transformers/trainer.py:compute_loss"},
        {"backward",
         "transformers/trainer.py:training_step torch/_tensor.py:backward c.py:forward"},
        {"evaluation", "t.py:train t.py:evaluate t.py:prediction_step t.py:compute_loss"},
        {"evaluation", "t.py:prediction_step transformers/generation/utils.py:generate"},
        {"generate", "t.py:training_step transformers/generation/utils.py:generate"},
        {"score", "t.py:training_step trl/trainer/g.py:_generate_and_score_completions"},
        {"generate", "t.py:training_step trl/trainer/g.py:_generate_and_score_completions "
                     "trl/trainer/g.py:_generate"},
        {"save", "t.py:_save_checkpoint torch/nn/modules/module.py:state_dict "
                 "f.py:_full_pre_state_dict_hook torch/nn/modules/module.py:to"},
        {"sync", "trl/trainer/g.py:_move_model_to_vllm f.py:_full_pre_state_dict_hook"},
        {"optimizer", "t.py:_inner_training_loop accelerate/optimizer.py:step torch/optim/adamw.py:"
                      "_init_group"},
        {"forward", "lightning/a.py:optimizer_step torch/optim/adamw.py:step a.py:closure "
                    "b.py:training_step"},
        {"-", "my/optimal/train.py:step"},
        {"load", "accelerate/accelerator.py:prepare torch/nn/modules/module.py:to"},
        {"optimizer", "accelerate/accelerator.py:prepare deepspeed/runtime/engine.py:"
                      "_configure_zero_optimizer"},
        {"forward", "t.py:training_step torch/nn/modules/module.py:to"},
        {"resume", "transformers/trainer.py:_load_best_model m.py:load_checkpoint"},
        {"engine", "vllm/engine/e.py:determine_num_available_blocks vllm/w.py:execute_model"},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        struct arena *a = test_arena();
        check_phase_in(a, rows[i].phase, traceback_of(a, rows[i].frames), __LINE__);
    }
}

#define EVALUATES "***** Running Evaluation *****\n  Num examples = 1,500\n  Batch size = 4\n"
#define LOADS     "Loading checkpoint shards:  57%|#  | 8/14 [00:41<00:31,  5.22s/it]\n"
#define LOADED    "Loading checkpoint shards: 100%|#####| 14/14 [01:21<00:00,  5.22s/it]\n"
#define AT(n)     "  4%|# | " #n "/235 [03:12<1:12:01, 19.21s/it]\n"
#define OF_16(n)  " 12%|# | " #n "/16 [00:02<00:14,  1.02s/it]\n"
#define KILLED    "  exitcode  : -9 (pid: 1)\n"

TEST(words_tell_where_no_frame_does)
{
    check_phase("load", LOADS KILLED, __LINE__);
    check_phase("load", LOADED LOADS KILLED, __LINE__);
    check_phase("-", LOADS LOADED KILLED, __LINE__);
    check_phase("-", LOADS AT(1) KILLED, __LINE__);
    check_phase("-", LOADS "***** Running training *****\n" KILLED, __LINE__);
    check_phase("load", LOADS HEAD FRAME OUT, __LINE__);
    check_phase("evaluation", AT(10) EVALUATES OUT, __LINE__);
    check_phase("evaluation", AT(10) EVALUATES OF_16(2) OUT, __LINE__);
    check_phase("-", AT(10) EVALUATES OF_16(2) AT(11) OUT, __LINE__);
    check_phase("-", AT(10) EVALUATES "{'eval_loss': 2.0, 'epoch': 1}\n" OUT, __LINE__);
    check_phase("save", AT(10) "Saving model checkpoint to out/checkpoint-10\n" OUT, __LINE__);
    check_phase("-", AT(10) "Saving model checkpoint to out/checkpoint-10\n" AT(11) OUT, __LINE__);
    check_phase("backward",
                AT(10) EVALUATES HEAD "  File \"a.py\", line 3, in backward\n    g()\n" OUT,
                __LINE__);
}

TEST(phases_are_told_of_memory_alone)
{
    struct doctor_result r = read_text(
        test_arena(), HEAD "  File \"a.py\", line 3, in evaluate\n    g()\nValueError: wrong\n");
    CHECK(r.cause && !r.cause->phase);
}

TEST(bars_of_an_evaluation_are_no_steps)
{
#define IN_EVALUATION HEAD "  File \"t.py\", line 3, in evaluate\n    g()\n" OUT
    static const struct {
        long long step, total;
        const char *text;
    } rows[] = {
        {10, 235, AT(10) OF_16(0) IN_EVALUATION},
        {10, 235, AT(10) IN_EVALUATION},
        {20, 235, AT(10) OF_16(0) OF_16(15) AT(10) AT(20) IN_EVALUATION},
        {20, 235, AT(10) OF_16(0) OF_16(15) AT(10) AT(20) OF_16(3) IN_EVALUATION},
        {235, 235, AT(235) EVALUATES OF_16(0) IN_EVALUATION},
        {-1, -1, EVALUATES OF_16(0) IN_EVALUATION},
        {-1, -1, AT(235) OF_16(0) IN_EVALUATION},
        {0, 16, OF_16(0) OUT},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        struct doctor_result r = read_text(test_arena(), rows[i].text);
        if (!r.cause || r.cause->step != rows[i].step || r.cause->steps_total != rows[i].total)
            test_failed(__FILE__, __LINE__, "row %td is %lld of %lld", i,
                        r.cause ? (long long)r.cause->step : -2,
                        r.cause ? (long long)r.cause->steps_total : -2);
    }
}

// A logger prints the message before the traceback is.
TEST(the_same_message_with_its_traceback)
{
    struct doctor_result r = read_text(
        test_arena(), OUT HEAD "  File \"a.py\", line 3, in _save_checkpoint\n    g()\n" OUT);
    CHECK_U64(r.cause->line, 1);
    CHECK_STR(str_from(phase_of(&r)), "save");
    CHECK_STR(r.cause->raised, "File \"a.py\", line 3, in _save_checkpoint");
}

TEST(what_a_trainer_says_of_its_settings)
{
    struct doctor_result r = read_text(
        test_arena(),
        "***** Running training *****\n  Num examples = 15,011\n"
        "  Instantaneous batch size per device = 2\n"
        "  Total train batch size (w. parallel, distributed & accumulation) = 64\n"
        "  Gradient Accumulation steps = 8\n" EVALUATES "  Instantaneous batch size = x\n");
    CHECK(!r.cause);
    CHECK_U64((uint64_t)r.said[DOCTOR_SAID_BATCH], 2);
    CHECK_U64((uint64_t)r.said[DOCTOR_SAID_ACCUMULATION], 8);
    CHECK_U64((uint64_t)r.said[DOCTOR_SAID_TOTAL_BATCH], 64);
    CHECK_U64((uint64_t)r.said[DOCTOR_SAID_EVAL_BATCH], 4);
    CHECK_U64((uint64_t)r.said[DOCTOR_SAID_EVAL_SIZE], 1500);
    r = read_text(test_arena(), "  Batch size = 4\n");
    CHECK(r.said[DOCTOR_SAID_EVAL_BATCH] == -1);
}

TEST(every_phase_is_explained)
{
    for (int i = 1; i < DOCTOR_PHASES; i++) {
        const struct doctor_phase_kind *p = &doctor_phases[i];
        CHECK(p->name && p->where);
        CHECK((p->remedies[0] == NULL) == (p->meaning == NULL));
        CHECK((p->host_remedies[0] == NULL) == (p->host_meaning == NULL));
    }
}
