// The walks over the table's rows that make a job out of settings, compare two jobs, and say a job
// in words. A field of a job is known by its offset; what its bytes mean is the row's kind.
#include "core/job/fields.h"

#include <string.h>

#include "core/allocator/torch.h"
#include "core/base/num.h"

// ------------------------------------------------------------------ reading

static void *field_in(struct job *j, const struct setting_def *def, ptrdiff_t size)
{
    ASSERT(def->field.size == size);
    return (char *)j + def->field.offset;
}

static const void *field_of(const struct job *j, const struct setting_def *def)
{
    return (const char *)j + def->field.offset;
}

static bool read_field(struct job *j, const struct setting_def *def, const struct setting *item,
                       struct error *e)
{
    if (def->read)
        return def->read(j, item, e);
    switch (def->kind) {
    case SETTING_COUNT:
        return setting_number(field_in(j, def, sizeof(uint64_t)), item, UNIT_COUNT,
                              (struct range){def->min, def->max}, e);
    case SETTING_BYTES:
        return setting_number(field_in(j, def, sizeof(uint64_t)), item, UNIT_BYTES,
                              (struct range){def->min, def->max}, e);
    case SETTING_SWITCH:
    case SETTING_FLAG:
        return setting_switch(field_in(j, def, sizeof(bool)), item, e);
    case SETTING_CHOICE:
        *(int *)field_in(j, def, sizeof(int)) = setting_word(def, item->value);
        return true;
    case SETTING_TEXT:
        break;
    }
    __builtin_trap();
}

bool job_read_settings(struct job *j, const struct settings *effective, struct error *e)
{
    for (const struct setting_def *def = setting_def_next(NULL); def; def = setting_def_next(def)) {
        const struct setting *item = def->field.size ? settings_find_z(effective, def->name) : NULL;
        if (item && !read_field(j, def, item, e))
            return false;
    }
    return true;
}

bool read_recipe(struct job *j, const struct setting *item, struct error *e)
{
    return recipe_parse(&j->recipe, &j->version, item, e);
}

bool read_loss(struct job *j, const struct setting *item, struct error *e)
{
    struct setting chunk = {STR("the chunk of loss"), str_cut(item->value, ':').tail, item->where};
    j->loss = (enum loss)setting_word(setting_def_find(STR("loss")), item->value);
    return j->loss != LOSS_CHUNKED ||
           setting_number(&j->loss_chunk, &chunk, UNIT_COUNT, (struct range){1, 1 << 28}, e);
}

bool read_checkpointing(struct job *j, const struct setting *item, struct error *e)
{
    const struct setting_def *def = setting_def_find(STR("checkpointing"));
    j->selective = str_is(item->value, def->third);
    j->checkpointing = item->value.n && char_is_digit(item->value.p[0]);
    if (j->checkpointing)
        return setting_number(&j->recomputed_layers, item, UNIT_COUNT,
                              (struct range){def->min, def->max}, e);
    return j->selective || setting_switch(&j->checkpointing, item, e);
}

// Only whether there is such a term changes the step.
bool read_beta(struct job *j, const struct setting *item, struct error *e)
{
    bool any = false, point = false;
    for (ptrdiff_t i = 0; i < item->value.n; i++) {
        char c = item->value.p[i];
        bool digit = c >= '0' && c <= '9';
        if (!digit && (c != '.' || point))
            return FAIL(e, BAD_INPUT, item->where, "beta must be a number such as 0.05, not '%.*s'",
                        STR_ARGS(str_short(item->value)));
        any |= digit && c != '0';
        point |= c == '.';
    }
    j->has_kl = any;
    return true;
}

// Two words for one task each.
bool read_task(struct job *j, const struct setting *item, struct error *e)
{
    (void)e;
    j->task = (enum task)setting_word(setting_def_find(STR("task")), item->value);
    if (j->task == TASK_PRETRAIN)
        j->task = TASK_SFT;
    if (j->task == TASK_OPD)
        j->task = TASK_DISTILL;
    return true;
}

bool read_torch(struct job *j, const struct setting *item, struct error *e)
{
    return torch_version_parse(&j->torch_minor, item->value, e);
}

static enum target target_named(struct str name)
{
    int found = FOR_NOTHING + 1;
    while (found < TARGETS && !str_is(name, target_defs[found].name))
        found++;
    return found < TARGETS ? (enum target)found : FOR_NOTHING;
}

// Slurm's files are around those of another target.
bool read_for(struct job *j, const struct setting *item, struct error *e)
{
    (void)e;
    j->in_slurm = str_is(item->value, "slurm");
    j->target = j->in_slurm ? FOR_ACCELERATE : target_named(item->value);
    return true;
}

bool read_around(struct job *j, const struct setting *item, struct error *e)
{
    if (!j->in_slurm)
        return FAIL(e, BAD_INPUT, item->where, "around says what a Slurm job runs: --for slurm");
    j->target = target_named(item->value);
    return true;
}

static const char target_names[] = "q|k|v|o|gate|up|down"; // in the order of enum lora_target

static const char whole_names[] = "embed|head"; // in the order of enum whole_module

// The bits of names with commas between them; false at one that is not known, which is then there.
static bool read_names(unsigned *bits, const char *known, struct str list, struct str *unknown)
{
    for (struct str_cut c = str_cut(list, ',');; c = str_cut(c.tail, ',')) {
        struct words words = words_of(known, '|');
        unsigned bit = 1;
        bool more = words_next(&words);
        for (; more && !str_equal(words.word, c.head); more = words_next(&words))
            bit <<= 1;
        *unknown = c.head;
        *bits |= bit;
        if (!more || !c.found)
            return more;
    }
}

// Width first.
bool read_image_size(struct job *j, const struct setting *item, struct error *e)
{
    struct str_cut cut = str_cut(item->value, 'x');
    struct setting width = {STR("the width of image-size"), cut.head, item->where};
    struct setting height = {STR("the height of image-size"), cut.tail, item->where};
    struct range range = {1, 65536};
    if (!cut.found)
        return FAIL(e, BAD_INPUT, item->where, "image-size must be WIDTHxHEIGHT, not '%.*s'",
                    STR_ARGS(str_short(item->value)));
    return setting_number(&j->image_width, &width, UNIT_PLAIN, range, e) &&
           setting_number(&j->image_height, &height, UNIT_PLAIN, range, e);
}

// all-linear, or names with commas between them.
bool read_lora_targets(struct job *j, const struct setting *item, struct error *e)
{
    bool all = str_is(item->value, "all-linear");
    struct str unknown;
    j->lora_targets = all ? LORA_ALL_TARGETS : 0;
    if (all || read_names(&j->lora_targets, target_names, item->value, &unknown))
        return true;
    return FAIL(e, BAD_INPUT, item->where,
                "lora-targets must be all-linear or a list out of q,k,v,o,gate,up,down, not '%.*s'",
                STR_ARGS(str_short(unknown)));
}

bool read_lora_whole(struct job *j, const struct setting *item, struct error *e)
{
    struct str unknown;
    j->lora_whole = 0;
    if (read_names(&j->lora_whole, whole_names, item->value, &unknown))
        return true;
    return FAIL(e, BAD_INPUT, item->where,
                "lora-whole must be embed, head or embed,head, not '%.*s'",
                STR_ARGS(str_short(unknown)));
}

// ------------------------------------------------------------------ the way back

void put_recipe(struct buf *b, const struct job *j)
{
    buf_put_z(b, recipe_words[j->recipe]);
}

void put_beta(struct buf *b, const struct job *j)
{
    buf_put_z(b, j->has_kl ? "0.05" : "0.0");
}

void put_loss(struct buf *b, const struct job *j)
{
    const struct setting_def *def = setting_def_find(STR("loss"));
    if (j->loss == LOSS_CHUNKED)
        buf_printf(b, "chunked:%llu", (unsigned long long)j->loss_chunk);
    else
        buf_put_z(b, def->words[j->loss]);
}

void put_checkpointing(struct buf *b, const struct job *j)
{
    if (j->recomputed_layers)
        buf_printf(b, "%llu", (unsigned long long)j->recomputed_layers);
    else
        buf_put_z(b, j->selective ? "selective" : j->checkpointing ? "on" : "off");
}

void put_torch(struct buf *b, const struct job *j)
{
    buf_printf(b, "2.%d", j->torch_minor);
}

void put_around(struct buf *b, const struct job *j)
{
    buf_put_z(b, j->target ? target_defs[j->target].name : "");
}

void put_for(struct buf *b, const struct job *j)
{
    if (j->in_slurm)
        buf_put_z(b, "slurm");
    else
        put_around(b, j);
}

void put_image_size(struct buf *b, const struct job *j)
{
    buf_printf(b, "%llux%llu", (unsigned long long)j->image_width,
               (unsigned long long)j->image_height);
}

static void put_names(struct buf *b, const char *known, unsigned bits)
{
    struct words words = words_of(known, '|');
    bool first = true;
    for (int i = 0; words_next(&words); i++)
        if (bits & 1u << i) {
            buf_put_z(b, first ? "" : ",");
            buf_put(b, words.word);
            first = false;
        }
}

void put_lora_targets(struct buf *b, const struct job *j)
{
    if (j->lora_targets == LORA_ALL_TARGETS)
        buf_put_z(b, "all-linear");
    else
        put_names(b, target_names, j->lora_targets);
}

void put_lora_whole(struct buf *b, const struct job *j)
{
    put_names(b, whole_names, j->lora_whole);
}

static uint64_t number_of(const struct job *j, const struct setting_def *def)
{
    uint64_t value;
    memcpy(&value, field_of(j, def), sizeof value);
    return value;
}

static bool switch_of(const struct job *j, const struct setting_def *def)
{
    bool on;
    memcpy(&on, field_of(j, def), sizeof on);
    return on;
}

static int choice_of(const struct job *j, const struct setting_def *def)
{
    int choice;
    memcpy(&choice, field_of(j, def), sizeof choice);
    return choice;
}

static void put_value(struct buf *b, const struct job *j, const struct setting_def *def)
{
    if (def->put) {
        def->put(b, j);
        return;
    }
    switch (def->kind) {
    case SETTING_COUNT:
    case SETTING_BYTES:
        buf_printf(b, "%llu", (unsigned long long)number_of(j, def));
        return;
    case SETTING_SWITCH:
    case SETTING_FLAG:
        buf_put_z(b, switch_of(j, def) ? "on" : "off");
        return;
    case SETTING_CHOICE:
        buf_put_z(b, def->words[choice_of(j, def)]);
        return;
    case SETTING_TEXT:
        return;
    }
}

struct str job_value(struct arena *a, const struct job *j, const struct setting_def *def)
{
    struct buf b = buf_in(a);
    if (def->field.size)
        put_value(&b, j, def);
    return buf_str(&b);
}

static bool same_field(const struct job *p, const struct job *q, struct setting_field f)
{
    return memcmp((const char *)p + f.offset, (const char *)q + f.offset, f.size) == 0;
}

bool job_same_training(const struct job *p, const struct job *q)
{
    for (const struct setting_def *def = setting_def_next(NULL); def; def = setting_def_next(def)) {
        bool same = same_field(p, q, def->field);
        for (ptrdiff_t i = 0; i < COUNT_OF(def->also); i++)
            same = same && same_field(p, q, def->also[i]);
        if (def->uses & USE_TRAINING && !same)
            return false;
    }
    return p->model.layers == q->model.layers && p->model.features == q->model.features;
}

// ------------------------------------------------------------------ in words

static bool is_fallback(const struct job *j, const struct setting_def *def)
{
    const char *word = def->words[choice_of(j, def)];
    return def->fallback && str_is(str_from(word), def->fallback);
}

static const char *switch_phrase(const struct job *j, const struct setting_def *def)
{
    if (def->third && j->selective)
        return "selective checkpointing";
    if (def->counted && j->recomputed_layers)
        return j->pipeline > 1 ? "checkpointing of the first @ layers of each stage"
                               : "checkpointing of the first @ layers";
    return def->field.size && switch_of(j, def) ? def->phrase : def->phrase_off;
}

// Rows that get a score have no loss over words.
static bool says_nothing(const struct job *j, const struct setting_def *def)
{
    return j->task == TASK_REWARD && def->field.offset == offsetof(struct job, loss);
}

// Which layers have adapters, and what is trained whole beside them.
static const char *text_phrase(const struct job *j, const struct setting_def *def)
{
    bool whole = def->field.offset == offsetof(struct job, lora_whole);
    return j->lora_rank && (!whole || j->lora_whole) ? def->phrase : NULL;
}

// NULL where the value goes without saying.
static const char *phrase_of(const struct job *j, const struct setting_def *def)
{
    if (says_nothing(j, def))
        return NULL;
    switch (def->kind) {
    case SETTING_COUNT:
        return def->phrase && number_of(j, def) > 1 ? def->phrase : NULL;
    case SETTING_SWITCH:
        return switch_phrase(j, def);
    case SETTING_CHOICE:
        return def->phrase && def->words && is_fallback(j, def) ? NULL : def->phrase;
    case SETTING_TEXT:
        return text_phrase(j, def);
    case SETTING_BYTES:
    case SETTING_FLAG:
        break;
    }
    return NULL;
}

static void put_tower(struct buf *b, const struct job *j)
{
    static const char *const frozen[FREEZES] = {"", ", vision frozen", ", language frozen"};
    if (!j->model.vision.depth)
        return;
    if (j->images)
        buf_printf(b, ", %llu image%s of %llux%llu", (unsigned long long)j->images,
                   j->images == 1 ? "" : "s", (unsigned long long)j->image_width,
                   (unsigned long long)j->image_height);
    bool idle = !j->images && j->freeze == FREEZE_NONE;
    buf_put_z(b, idle ? ", vision tower idle" : frozen[j->freeze]);
}

void job_put_phrase(struct buf *b, const struct job *j)
{
    bool first = true;
    for (const struct setting_def *def = setting_def_next(NULL); def; def = setting_def_next(def)) {
        const char *phrase = phrase_of(j, def);
        if (!phrase)
            continue;
        struct str_cut cut = str_cut(str_from(phrase), '@');
        buf_put_z(b, first ? "" : ", ");
        buf_put(b, cut.head);
        if (cut.found)
            put_value(b, j, def);
        buf_put(b, cut.tail);
        first = false;
    }
    put_tower(b, j);
}
