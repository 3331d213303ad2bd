// What TRL's files say of answers that are generated (grpo, rloo, distillation): by whom, how many
// at once, and how prompt and answer share a row. From TRL 1.16 (trainer/grpo_config.py).
#include "core/foreign/conclude.h"

// vllm_mode is colocate unless the file says otherwise. On the GPUs that train vLLM holds its part
// of the card, weights and cache, whatever the trainer does (sleep aside): what is left is a limit.
static bool conclude_engine(struct conclusion *c)
{
    const struct setting *vllm = fact(c, "vllm");
    bool elsewhere = fact(c, "vllm-elsewhere"), limited = settings_find_z(c->given, "memory-limit");
    if (!vllm)
        return true;
    if (!elsewhere && !limited)
        return FAIL(c->error, UNSUPPORTED, vllm->where,
                    "vLLM on the GPUs that train takes vllm_gpu_memory_utilization of each (0.3 "
                    "where nothing is said), which is not modelled: --memory-limit says what it "
                    "leaves the trainer; with vllm_mode: server it has GPUs of its own");
    foreign_note(c->found, str_format(c->out->arena,
                                      "%.*s: answers come from vLLM%s: predicted as if the trainer "
                                      "generated them, which takes as much or more",
                                      STR_ARGS(vllm->where),
                                      elsewhere ? "'s own GPUs" : ", beside --memory-limit"));
    return true;
}

// Micro-batches whose answers are generated at once; as many as a step has where neither key says
// it (GRPOConfig.__post_init__).
static bool check_generated_at_once(struct conclusion *c)
{
    const struct setting *steps = fact(c, "steps-per-generation"),
                         *all = fact(c, "generation-batch");
    const struct setting *said = steps ? steps : all;
    uint64_t at_once = 0, rows = 0, batch = 1, accumulation = 1;
    if (!said || fact(c, "vllm"))
        return true;
    if (!count_of(c, &at_once, steps) || !count_of(c, &rows, all) ||
        !count_of(c, &batch, effective(c, "batch")) ||
        !count_of(c, &accumulation, effective(c, "accum")))
        return false;
    uint64_t of_all = sat_mul(batch, c->ranks);
    if (!steps && !of_all)
        return true;
    at_once = steps ? at_once : rows / of_all;
    return at_once == accumulation ||
           FAIL(c->error, UNSUPPORTED, said->where,
                "answers of %llu micro-batches are generated at once here; modelled are those of "
                "one step, which has %llu",
                (unsigned long long)at_once, (unsigned long long)accumulation);
}

// Prompts are cut by older versions alone, answers by all; where nothing cuts prompts, the context
// is what the user says, and a quarter of it the prompt's where nobody says otherwise.
static bool conclude_lengths(struct conclusion *c)
{
    const struct setting *prompted = fact(c, "prompted"), *completion = fact(c, "completion");
    const struct setting *context = effective(c, "context");
    uint64_t prompt = 0, answer = 512, all = 0; // max_completion_length
    if (!count_of(c, &prompt, prompted) || !count_of(c, &answer, completion) ||
        !count_of(c, &all, context))
        return false;
    if (prompt && !context)
        return put_count(c, "context", prompt + answer, prompted->where) &&
               (prompt == (prompt + answer) / 4 || put_count(c, "prompt", prompt, prompted->where));
    if (!context)
        foreign_note(c->found,
                     str_format(c->out->arena,
                                "%.*s: TRL cuts answers (max_completion_length %llu), and "
                                "prompts not at all: --context says how long both are",
                                STR_ARGS(fact(c, "TRL")->where), (unsigned long long)answer));
    if (!completion || !context || answer == all - all / 4)
        return true;
    return answer < all ? put_count(c, "prompt", all - answer, completion->where)
                        : put_count(c, "response", answer, completion->where);
}

bool conclude_answers(struct conclusion *c)
{
    const struct setting *task = effective(c, "task"), *answers = fact(c, "answers");
    if (!task || !words_have("grpo|rloo|distill", '|', task->value))
        return true;
    bool sampled = answers && !str_is(task->value, "distill");
    return conclude_engine(c) && check_generated_at_once(c) && conclude_lengths(c) &&
           (!sampled || put(c, "samples", answers->value, answers->where));
}
