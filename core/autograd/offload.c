// See offload.h.
#include "core/autograd/offload.h"

#include "core/allocator/block.h"

// Smaller tensors stay on the card.
enum { FEWEST_BYTES = 1024 };

static void drop_stash(struct host_stash *o, struct machine *m, uint64_t up_to)
{
    int kept = 0;
    for (int i = 0; i < o->stash_count; i++) {
        if (o->stash[i].number > up_to) {
            o->stash[kept++] = o->stash[i];
            continue;
        }
        machine_await(m, o->stash[i].copied); // s0.wait_event
        machine_drop(m, o->stash[i].storage);
    }
    o->stash_count = kept;
}

// _get_unique_tensor_key: an address and a type. Another tensor that has come to lie there, where
// only the copy of the first is left, is taken for it.
static uint64_t key_of(const struct storage *s)
{
    return s->place ? s->place->address : (uint64_t)(uintptr_t)s;
}

static bool is_stashed(const struct host_stash *o, const struct storage *s)
{
    for (int i = 0; i < o->stash_count; i++)
        if (o->stash[i].key == key_of(s) && o->stash[i].width == s->width)
            return true;
    return false;
}

void offload_skip(struct host_stash *o)
{
    o->numbers++;
}

// The last five stay until their copies can be taken as done; what is kept once more meanwhile
// stays for good.
struct storage *offload_pack(struct host_stash *o, struct machine *m, struct storage *s,
                             enum laid laid)
{
    uint64_t number = ++o->numbers;
    if (!s || s->bytes < FEWEST_BYTES || laid == LAID_AS_WEIGHT || is_stashed(o, s))
        return storage_share(s);
    struct storage *sent =
        laid == LAID_AS_VIEW ? machine_take(m, s->bytes, MEMORY_WORKING) : storage_share(s);
    drop_stash(o, m, number > OFFLOAD_STASH ? number - OFFLOAD_STASH : 0);
    ASSERT(o->stash_count < OFFLOAD_STASH);
    machine_host(m, machine_rates(m)->keep);
    machine_follow(m, o->stream, STREAM_COMPUTE);
    machine_host_copy(m, o->stream, s->bytes);
    o->stash[o->stash_count++] =
        (struct stashed){number, key_of(s), s->width, sent, machine_when(m, o->stream)};
    return machine_take_host(m, s->bytes, number);
}

static struct storage *tensor_of(const struct host_stash *o, const struct storage *s)
{
    for (int i = 0; i < o->stash_count; i++)
        if (o->stash[i].number == s->number)
            return o->stash[i].storage;
    return NULL;
}

bool offload_has(const struct host_stash *o, const struct storage *s)
{
    return s->on_host && tensor_of(o, s);
}

struct storage *offload_unpack(struct host_stash *o, struct machine *m, struct storage *s)
{
    if (!s || !s->on_host)
        return s;
    struct storage *back = storage_share(tensor_of(o, s));
    machine_host(m, machine_rates(m)->keep);
    if (!back) {
        back = machine_take_on(m, o->stream, s->bytes, MEMORY_CHECKPOINTS);
        machine_host_copy(m, o->stream, s->bytes);
        machine_follow(m, STREAM_COMPUTE, o->stream);
    }
    machine_drop(m, s);
    o->asked = true;
    return back;
}

// One that something else has too is left to that, and goes when the compute stream is through.
static void put_back(struct host_stash *o, struct machine *m, struct storage *s)
{
    bool brought = s->stream == o->stream;
    if (!brought || s->references > 1) {
        s->recorded = brought;
        machine_drop(m, s);
        return;
    }
    ASSERT(o->back_count < OFFLOAD_BACK);
    o->back[o->back_count++] = s;
}

static void drop_back(struct host_stash *o, struct machine *m)
{
    for (int i = 0; i < o->back_count; i++)
        machine_drop(m, o->back[i]);
    o->back_count = 0;
}

void offload_settle(struct host_stash *o, struct machine *m, struct storage **saved, int count)
{
    if (!o->asked)
        return;
    o->asked = false;
    drop_stash(o, m, o->numbers);
    machine_await_on(m, o->stream, o->used); // s1.wait_event, of the node before
    o->used = machine_when(m, STREAM_COMPUTE);
    drop_back(o, m);
    if (o->input)
        put_back(o, m, o->input);
    o->input = NULL;
    for (int i = 0; i < count; i++) {
        if (!saved[i] || saved[i]->stream != o->stream)
            continue;
        put_back(o, m, saved[i]);
        saved[i] = NULL;
    }
}

void offload_end(struct host_stash *o, struct machine *m)
{
    if (!o->on)
        return;
    drop_stash(o, m, o->numbers);
    drop_back(o, m);
    machine_synchronize(m, m->clock[STREAM_COMPUTE]);
    o->numbers = 0;
}
