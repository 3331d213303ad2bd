// See lengths.h.
#include "core/predict/lengths.h"

static bool read_parts(struct lengths *l, const struct setting *parts, struct error *e)
{
    struct str rest = parts->value;
    while (rest.n) {
        struct str_cut cut = str_cut(rest, ' ');
        uint64_t value;
        if (l->parts == MOST_LENGTHS || unit_parse(&value, UNIT_PLAIN, cut.head) != UNIT_OK)
            return FAIL(e, BAD_INPUT, parts->where, "these lengths cannot be read");
        l->part[l->parts++] = (double)value;
        rest = cut.found ? cut.tail : STR_NONE;
    }
    return true;
}

bool lengths_read(struct lengths *l, const struct settings *s, struct error *e)
{
    const struct setting *mean = settings_find_z(s, "mean-length");
    const struct setting *parts = settings_find_z(s, "data.lengths");
    const struct setting *count = settings_find_z(s, "data.count");
    uint64_t value;
    *l = (struct lengths){0};
    if (mean && parts)
        return FAIL(e, BAD_INPUT, mean->where, "the lengths of --data have a mean already");
    if (parts)
        return read_parts(l, parts, e) &&
               (!count ||
                setting_number(&l->count, count, UNIT_PLAIN, (struct range){1, UINT64_MAX}, e));
    if (!mean)
        return true;
    if (!setting_number(&value, mean, UNIT_COUNT, (struct range){1, 1 << 28}, e))
        return false;
    l->parts = 1;
    l->part[0] = (double)value;
    return true;
}

bool lengths_check(const struct job *job, struct error *e)
{
    const struct setting *mean = settings_find_z(job->given, "mean-length");
    uint64_t value = 0;
    if (mean && !setting_number(&value, mean, UNIT_COUNT, (struct range){1, 1 << 28}, e))
        return false;
    return value <= job->context ||
           FAIL(e, BAD_INPUT, mean->where,
                "sequences cannot be %llu tokens long on average where the context cuts them at "
                "%llu; 1 to %llu are possible",
                (unsigned long long)value, (unsigned long long)job->context,
                (unsigned long long)job->context);
}

static double cut_at(double length, uint64_t most)
{
    return length < (double)most ? length : (double)most;
}

double lengths_mean(const struct lengths *l, uint64_t most)
{
    double sum = 0;
    for (int i = 0; i < l->parts; i++)
        sum += cut_at(l->part[i], most);
    return sum / l->parts;
}

static double power(double base, uint64_t exponent)
{
    double result = 1;
    while (exponent) {
        result *= exponent % 2 ? base : 1;
        base *= base;
        exponent /= 2;
    }
    return result;
}

// How likely the longest of `of` is in this part or a shorter one.
static double at_most(const struct lengths *l, int part, uint64_t of)
{
    return power((double)(part + 1) / l->parts, of);
}

double lengths_longest(const struct lengths *l, uint64_t most, uint64_t of)
{
    double sum = 0, before = 0;
    for (int i = 0; i < l->parts; i++) {
        double now = at_most(l, i, of);
        sum += (now - before) * cut_at(l->part[i], most);
        before = now;
    }
    return sum;
}

void lengths_typical(double *typical, int count, const struct lengths *l, uint64_t of)
{
    int part = 0;
    for (int i = 0; i < count; i++) {
        while (part < l->parts - 1 && at_most(l, part, of) < (i + 0.5) / count)
            part++;
        typical[i] = l->part[part];
    }
}
