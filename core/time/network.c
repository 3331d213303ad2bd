// See network.h.
#include "core/time/network.h"

#include <string.h>

#define GB_S 1e9

// What collectives reach of a link's rate: NCCL's ring on 8 GPUs, all-gather and reduce-scatter
// (stas00/ml-engineering 744d01e, network/benchmarks: 8 x H200 361 and 363 of 450 GB/s; A100 235 of
// 300).
static const double RING_PART = 0.79;

// Cards without NVLink (SimuMax 4dcaae5, A100 PCIe: 11 to 21 of 30 GB/s, by how many share the
// switches), and all-to-all on 8 x B200 (0.597 of 900 there).
static const double PCIE_PART = 0.55, EXCHANGE_PART = 0.6;

// Seconds before the first byte, and for each further rank (awsome-distributed-training 7217859,
// nccl-tests: 8 x H100 18.8 us up to 32 KiB; 16 x H100 69 us over EFA).
static const double FIRST_INSIDE = 15e-6, FIRST_ACROSS = 50e-6, EACH_RANK = 1e-6;

// B200's NVLink carries more and begins later: 651 of 900 GB/s, 23 us and 9 us for each further
// rank (SimuMax 4dcaae5's fit to all-gathers and reduce-scatters of 2 to 8 ranks). All-reduces of
// 64 MiB by 8 ranks take 293 us in ml-engineering 744d01e, 263 by that fit, and 188 by the figures
// above.
static const double BLACKWELL_RING = 0.72, BLACKWELL_FIRST = 14e-6, BLACKWELL_EACH_RANK = 9e-6;

// What a node sends, of its cards' rate: 8 x 400 Gb/s reach 382 of 400 GB/s (32 x B200,
// ml-engineering).
static const double ACROSS_PART = 0.9;

// Bytes a second of a node's cards, as they are sold: 8 x 400 Gb/s, 8 x 200 Gb/s, 100 Gb/s.
static const struct fabric {
    const char *word, *name;
    double node;
} fabrics[] = {{"ib400", "8 x 400 Gb/s InfiniBand", 400 * GB_S},
               {"roce", "8 x 400 Gb/s RoCE", 400 * GB_S},
               {"efa", "EFA, 3200 Gb/s", 400 * GB_S},
               {"nvlink", "NVLink", 0},
               {"pcie", "100 Gb/s Ethernet", 12.5 * GB_S}};

enum { FABRIC_IB400, FABRIC_NVLINK = 3, FABRIC_PCIE = 4 };

static bool has_nvlink(const struct gpu *card)
{
    return card->link_kind && str_starts(str_from(card->link_kind), STR("NVLink"));
}

static void set_inside(struct network *n, const struct gpu *card, bool nvlink)
{
    static const double pcie = 30 * GB_S; // Gen4 x16, one way
    double rate = card->link.value ? (double)card->link.value : pcie;
    n->inside = nvlink ? card->link_kind : "PCIe";
    bool blackwell = nvlink && card->capability >= 100 && card->capability < 110;
    double ring = blackwell ? BLACKWELL_RING : RING_PART;
    n->link = nvlink ? ring * rate : PCIE_PART * (rate < 2 * pcie ? rate : 2 * pcie);
    n->first = blackwell ? BLACKWELL_FIRST : FIRST_INSIDE;
    n->each_rank = blackwell ? BLACKWELL_EACH_RANK : EACH_RANK;
}

static void set_across(struct network *n, const struct fabric *f)
{
    n->across = f->name;
    n->node = f->node > 0 ? ACROSS_PART * f->node : n->link * (double)n->per_node;
}

// What such cards are usually joined by.
static const struct fabric *usual_fabric(const struct gpu *card)
{
    static const struct fabric half = {NULL, "8 x 200 Gb/s", 200 * GB_S};
    if (!has_nvlink(card))
        return &fabrics[FABRIC_PCIE];
    return card->capability >= 90 ? &fabrics[FABRIC_IB400] : &half;
}

// Bytes a second, of 12.5 or 12.5GB/s.
static bool read_speed(uint64_t *rate, struct str text)
{
    char with_unit[32];
    const struct str unit = STR("GB/s");
    if (unit_parse(rate, UNIT_SPEED, text) == UNIT_OK)
        return true;
    if (text.n + unit.n > (ptrdiff_t)sizeof with_unit)
        return false;
    memcpy(with_unit, text.p, (size_t)text.n);
    memcpy(with_unit + text.n, unit.p, (size_t)unit.n);
    return unit_parse(rate, UNIT_SPEED, (struct str){with_unit, text.n + unit.n}) == UNIT_OK;
}

static bool read_network(struct network *n, const struct gpu *card, const struct setting *given,
                         struct error *e)
{
    for (int i = 0; i < COUNT_OF(fabrics); i++)
        if (str_is(given->value, fabrics[i].word)) {
            if (i == FABRIC_PCIE)
                set_inside(n, card, false);
            set_across(n, &fabrics[i]);
            return true;
        }
    uint64_t rate;
    if (!read_speed(&rate, given->value) || !rate || rate > UINT64_C(100000000000000))
        return FAIL(e, BAD_INPUT, given->where,
                    "must be ib400, roce, efa, nvlink, pcie, none, or GB/s of a node (up to "
                    "100000)");
    n->across = "as given";
    n->node = (double)rate;
    return true;
}

bool network_of(struct network *n, const struct hardware *h, const struct setting *given,
                struct error *e)
{
    const struct gpu *card = &h->card;
    *n = (struct network){.nodes = h->nodes, .per_node = h->gpus_per_node};
    set_inside(n, card, has_nvlink(card));
    set_across(n, usual_fabric(card));
    if (!given)
        return true;
    n->silent = str_is(given->value, "none");
    return n->silent || read_network(n, card, given, e);
}

// One way between two GPUs: 396 of 450 GB/s on H200, 271 to 277 of 300 on A100 (ml-engineering
// 744d01e); 16 us before it (SimuMax 4dcaae5, B200).
double handing_seconds(const struct network *n, uint64_t ranks, double bytes)
{
    static const double pair_part = 0.88, first = 16e-6;
    double rate = n->link / RING_PART * pair_part;
    bool across = ranks > n->per_node; // the slowest of the links is waited for
    if (across && n->node / (double)n->per_node < rate)
        rate = n->node / (double)n->per_node;
    return n->silent ? 0 : (across ? FIRST_ACROSS : first) + bytes / rate;
}

// Of what a rank exchanges with all, the part for other nodes.
static double exchanged_across(const struct network *n, struct ranks_apart g)
{
    uint64_t inside = n->per_node / g.stride;
    return 1 - (inside > 1 ? (double)inside : 1) / (double)g.ranks;
}

double group_seconds(const struct network *n, enum collective kind, struct ranks_apart g,
                     double bytes)
{
    if (g.ranks < 2 || n->silent)
        return 0;
    bool across = kind == REPLICA_REDUCE ? n->nodes > 1 : g.ranks * g.stride > n->per_node;
    double rate = kind == ALL_TO_ALL ? n->link * EXCHANGE_PART / RING_PART : n->link;
    // Each GPU has its part of the node's, or a ring has one of all rings'.
    bool apart = kind == REPLICA_REDUCE || kind == ALL_TO_ALL || g.stride > n->per_node;
    double shared = n->node / (double)(apart ? n->per_node : g.stride);
    double part = (double)(g.ranks - 1) / (double)g.ranks;
    if (across && shared < rate) {
        rate = shared;
        part = kind == ALL_TO_ALL ? exchanged_across(n, g) : part;
    }
    double sent = bytes * part * (kind == ALL_REDUCE || kind == REPLICA_REDUCE ? 2 : 1);
    double each = across ? EACH_RANK : n->each_rank;
    return (across ? FIRST_ACROSS : n->first) + (double)g.ranks * each + sent / rate;
}

double collective_seconds(const struct network *n, enum collective kind, uint64_t ranks,
                          double bytes)
{
    return group_seconds(n, kind, (struct ranks_apart){ranks, 1}, bytes);
}
