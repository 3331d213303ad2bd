// How far what lives outside torch may be from what is counted (outside_of), part by part:
// measured, or as far as what others saw.
#include "core/evidence/evidence.h"

#include <string.h>

#define MB UINT64_C(1000000)

static bool is_trinity(const struct job *job)
{
    return job->recipe == RECIPE_TRINITY;
}

static bool is_verl(const struct job *job)
{
    return job->recipe == RECIPE_VERL;
}

static bool is_spread(const struct job *job)
{
    return job_ranks(job) > 1 || is_trinity(job) || is_verl(job);
}

static bool is_alone(const struct job *job)
{
    return !is_spread(job);
}

static bool is_ddp_alone(const struct job *job)
{
    return !is_spread(job) && job->strategy == STRATEGY_DDP;
}

static bool is_spread_elsewhere(const struct job *job)
{
    return is_spread(job) && !is_trinity(job);
}

static bool has_two_in_sequence(const struct job *job)
{
    return job->ulysses == 2;
}

static bool has_more_in_sequence(const struct job *job)
{
    return job->ulysses > 2;
}

static bool is_measured_card(const struct job *job)
{
    return strcmp(job->hardware.card.name, "H200") == 0;
}

// Under trinity what lives outside torch is fitted as a whole.
static bool is_other_card(const struct job *job)
{
    return !is_measured_card(job) && job->hardware.card.context.value && !is_trinity(job);
}

static bool is_unknown_card(const struct job *job)
{
    return !job->hardware.card.context.value;
}

// The runs are those of tests/runs/h200_runs.jsonl, the trainers TRL 1.16, transformers 5.17 and
// DeepSpeed 0.19, the capacities tests/runs/trinity_capacity_a100.json.
const struct spread_row spread_rows[] = {
    {is_other_card, 128 * MIB, 128 * MIB,
     "the context is not measured on this card: 256 to 616 MiB were seen on others"},
    {is_unknown_card, 0, 616 * MIB,
     "the context is unknown for this card: 616 MiB is the largest seen (Mooncake#3434)"},
    {is_alone, 0, 27 * MIB,
     "kernels and libraries took 240 to 267 MiB at the end of 33 runs on an H200 and 11 of "
     "unmodified trainers"},
    {is_spread_elsewhere, 10 * MIB, MIB,
     "kernels and libraries took 310 to 320 MiB at the end of 78 runs on an H200 and 8 of "
     "unmodified trainers"},
    {is_trinity, 56 * MIB, 99 * MIB,
     "1.45 to 1.60 GiB outside torch agree with Trinity's published capacities"},
    {is_verl, 0, 404 * MIB,
     "an engine that sleeps beside it keeps 774 MiB (NeMo-RL, a model of 1B) to 1.15 GiB "
     "(vLLM, a model of 8 GiB)"},
    {is_ddp_alone, MIB, MIB, "NCCL took 558 MiB with ddp on one H200"},
    // A connection has 10 MiB of buffers with its receiver and 2 with its sender (6 and 6 where an
    // A100 reads), a channel one connection in its ring and, where all are made at once, one or two
    // in its tree: nccl 2.20, init.cc and transport/p2p.cc. 24 channels, as A100s behind switches
    // have, make 604 MB with two ranks and 906 with more. From 2.22 on only what is used is
    // connected, 302 MB of rings, beside the 585 MB that NCCL took on one rank of an H200.
    {is_spread_elsewhere, 144 * MB, 912 * MB,
     "NCCL is not measured: 688 MB on 4 x A100, 544 with two ranks (nccl#964), 1.6 GB elsewhere "
     "(nccl#864); its source has 604 to 906 MB of buffers for 24 channels"},
    {has_two_in_sequence, 40 * MIB, 0,
     "3.32 to 3.45 GiB outside torch with sp 2 agree with Trinity's published capacities"},
    {has_more_in_sequence, 60 * MIB, 352 * MIB,
     "4.55 to 5.1 GiB outside torch with sp 4 agree with Trinity's published capacities"},
};

const ptrdiff_t spread_row_count = COUNT_OF(spread_rows);

struct spread spread_of(const struct job *job)
{
    struct spread s = {0};
    for (ptrdiff_t i = 0; i < spread_row_count; i++)
        if (spread_rows[i].when(job)) {
            s.less_bytes += spread_rows[i].less_bytes;
            s.more_bytes += spread_rows[i].more_bytes;
        }
    return s;
}
