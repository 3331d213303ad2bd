// See epoch.h.
#include "core/predict/epoch.h"

#include "core/base/num.h"

#define TRAINERS                                                                    \
    "transformers 5.17, trainer.py, set_initial_training_values; accelerate 1.15, " \
    "data_loader.py, "                                                              \
    "BatchSamplerShard: ranks get equally many micro-batches, the last ones again from the start"
#define OURS "core/emit/scripts/train.py: dataloader_drop_last=True; the rest as the Trainer has it"

const struct remainder_row remainder_rows[RECIPES] = {
    [RECIPE_HF] = {REMAINDER_MICRO_DROPPED, "incomplete micro-batches are dropped", OURS},
    [RECIPE_TRANSFORMERS] = {REMAINDER_MICRO_DROPPED, "incomplete micro-batches are dropped", OURS},
    [RECIPE_DEEPSPEED] = {REMAINDER_MICRO_DROPPED, "incomplete micro-batches are dropped", OURS},
    [RECIPE_TRL] = {REMAINDER_TRAINED, "the last step is a smaller one", TRAINERS},
    [RECIPE_AXOLOTL] = {REMAINDER_TRAINED, "the last step is a smaller one", TRAINERS},
    [RECIPE_LLAMAFACTORY] = {REMAINDER_TRAINED, "the last step is a smaller one", TRAINERS},
    [RECIPE_VERL] = {REMAINDER_DROPPED, "what fills no batch is dropped",
                     "verl 0.9.1, trainer/ppo/ray_trainer.py and sft_trainer.py: drop_last=True"},
    [RECIPE_TRINITY] = {REMAINDER_DROPPED, "what fills no batch is dropped",
                        "Trinity-RFT, buffer/reader/file_reader.py: drop_last=True"},
    [RECIPE_MEGATRON] = {REMAINDER_DROPPED, "what fills no batch is dropped",
                         "slime/utils/dp_schedule.py: num_rollouts // global_batch_size"},
};

const struct remainder_row remainder_of_answers = {
    REMAINDER_DROPPED, "what fills no batch is dropped",
    "trl 1.16, trainer/utils.py, RepeatSampler: chunks that are not full are left out"};

// "0.4", "2.49": digits, and at most one point.
static bool read_price(double *price, const struct setting *item, struct error *e)
{
    double value = 0, place = 0;
    for (ptrdiff_t i = 0; i < item->value.n; i++) {
        char c = item->value.p[i];
        bool point = c == '.' && place <= 0 && item->value.n > 1;
        if (i > 15 || (!point && !char_is_digit(c)))
            return FAIL(e, BAD_INPUT, item->where, "price is a number such as 0.4, not '%.*s'",
                        STR_ARGS(str_short(item->value)));
        place = point ? 1 : place * 10;
        value = point ? value : value * 10 + (c - '0');
    }
    *price = value / (place > 0 ? place : 1);
    return item->value.n > 0 ||
           FAIL(e, BAD_INPUT, item->where, "price is a number such as 0.4, and empty here");
}

bool data_read(struct data *d, const struct settings *s, struct error *e)
{
    const struct setting *given = settings_find_z(s, "data-size");
    const struct setting *size = given ? given : settings_find_z(s, "data.count");
    const struct setting *epochs = settings_find_z(s, "epochs");
    const struct setting *price = settings_find_z(s, "price");
    *d = (struct data){.epochs = 1, .answers = 1, .priced = price != NULL};
    return (!size ||
            setting_number(&d->size, size, UNIT_COUNT, (struct range){1, UINT64_C(1) << 40}, e)) &&
           (!epochs ||
            setting_number(&d->epochs, epochs, UNIT_COUNT, (struct range){1, 100000}, e)) &&
           (!price || read_price(&d->price, price, e)) &&
           (!price || d->size ||
            FAIL(e, BAD_INPUT, price->where,
                 "a price makes a cost of the hours that --data-size or --data takes, and neither "
                 "is given"));
}

uint64_t packed_rows(uint64_t sequences, double mean_tokens, uint64_t row_tokens)
{
    double rows = (double)sequences * mean_tokens / (double)row_tokens;
    return (uint64_t)rows + ((double)(uint64_t)rows < rows);
}

uint64_t steps_per_epoch(enum recipe recipe, uint64_t size, struct split s)
{
    uint64_t global = sat_mul(sat_mul(s.batch, s.accum), s.data_parallel);
    uint64_t micro = 0, steps = 0;
    switch (remainder_rows[recipe].remainder) {
    case REMAINDER_TRAINED:
        micro = u64_divide_up(u64_divide_up(size, s.batch), s.data_parallel);
        steps = u64_divide_up(micro, s.accum);
        break;
    case REMAINDER_MICRO_DROPPED:
        micro = size / s.batch / s.data_parallel;
        steps = u64_divide_up(micro, s.accum);
        break;
    case REMAINDER_DROPPED:
        steps = size / global;
        break;
    }
    return steps;
}

struct training_time training_time_of(const struct data *d, enum recipe recipe, struct split split,
                                      uint64_t gpus, double step_s)
{
    uint64_t size = d->rows ? d->rows : sat_mul(d->size, d->answers);
    uint64_t global = sat_mul(sat_mul(split.batch, split.accum), split.data_parallel);
    struct training_time t = {.steps_per_epoch = d->grouped ? size / global
                                                            : steps_per_epoch(recipe, size, split)};
    t.steps = sat_mul(t.steps_per_epoch, d->epochs);
    t.hours = (double)t.steps * step_s / 3600;
    t.gpu_hours = t.hours * (double)gpus;
    t.cost = t.gpu_hours * d->price;
    return t;
}
