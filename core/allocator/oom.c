// The numbers behind an out-of-memory, and torch's sentence around them. Where the device is not
// known (a recording says "refused" and nothing else), what is free is at least what had been
// reserved before and is not any more.
#include "core/allocator/oom.h"

#include "core/allocator/allocator.h"

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

// What the device has free: known, recorded, or 0.
static uint64_t device_free_of(const struct allocator *a)
{
    if (a->options.device_bytes)
        return driver_free_bytes(&a->driver);
    return a->driver.tape ? a->driver.tape->free_bytes : 0;
}

// What could still have been taken. A recording's limit is not known, but that it was a limit is
// where the device had enough.
static uint64_t room_of(const struct allocator *a, bool by_device)
{
    const struct allocator_options *o = &a->options;
    const struct stat *reserved = &a->stats.reserved_bytes;
    uint64_t room = by_device ? device_free_of(a) : less(reserved->peak, reserved->current);
    uint64_t allowed = less(o->limit_bytes, reserved->current);
    if (o->limited && (allowed < room || !o->device_bytes))
        return allowed;
    return room;
}

void allocator_explain_oom(struct allocator *a, uint64_t requested_bytes, uint16_t stream)
{
    const struct allocator_options *o = &a->options;
    uint64_t reserved = a->stats.reserved_bytes.current;
    uint64_t tried = options_segment_bytes(o, options_round(o, requested_bytes));
    uint64_t unallocated = reserved - a->stats.allocated_bytes.current;
    uint64_t growth =
        allocator_growth(a, (struct request){.bytes = requested_bytes, .stream = stream});
    bool recorded = !o->device_bytes && device_free_of(a);
    bool unknown_limit = recorded && !o->limited && growth <= device_free_of(a);
    uint64_t room = room_of(a, o->device_bytes || (recorded && !unknown_limit));
    a->oom = (struct allocator_oom){
        .cause = room + unallocated >= tried ? OOM_FRAGMENTATION : OOM_EXHAUSTION,
        .by_limit = unknown_limit || (o->limited && reserved + tried > o->limit_bytes),
        .torch_minor = o->torch_minor,
        .requested_bytes = requested_bytes,
        .tried_bytes = tried,
        .device_bytes = o->device_bytes,
        .free_bytes = o->device_bytes || recorded ? device_free_of(a) : room,
        .free_known = o->device_bytes || recorded,
        .process_bytes = a->driver.used_bytes + o->outside_bytes,
        .limited = o->limited,
        .limit_bytes = o->limit_bytes,
        .allocated_bytes = a->stats.allocated_bytes.current,
        .unallocated_bytes = unallocated,
        .stream = stream,
    };
}

// Upper bounds are inclusive: exactly 1 MiB prints as "1024.00 KiB".
static void put_size(struct buf *out, uint64_t bytes)
{
    if (bytes <= KIB)
        buf_printf(out, "%llu bytes", (unsigned long long)bytes);
    else if (bytes <= MIB)
        buf_printf(out, "%.2f KiB", (double)bytes / (double)KIB);
    else if (bytes <= GIB)
        buf_printf(out, "%.2f MiB", (double)bytes / (double)MIB);
    else
        buf_printf(out, "%.2f GiB", (double)bytes / (double)GIB);
}

static void put_sized(struct buf *out, const char *before, uint64_t bytes)
{
    buf_put_z(out, before);
    put_size(out, bytes);
}

void oom_message(const struct allocator_oom *oom, struct buf *out)
{
    bool alloc_conf = torch_has(oom->torch_minor, TORCH_MESSAGE_NAMES_ALLOC_CONF);
    bool new_url = torch_has(oom->torch_minor, TORCH_MESSAGE_NEW_URL);
    put_sized(out, "CUDA out of memory. Tried to allocate ", oom->tried_bytes);
    put_sized(out, ". GPU 0 has a total capacity of ", oom->device_bytes);
    put_sized(out, " of which ", oom->free_bytes);
    put_sized(out, " is free. Including non-PyTorch memory, this process has ", oom->process_bytes);
    buf_put_z(out, " memory in use. ");
    if (oom->limited) {
        put_size(out, oom->limit_bytes);
        buf_put_z(out, " allowed; ");
    }
    put_sized(out, "Of the allocated memory ", oom->allocated_bytes);
    put_sized(out, " is allocated by PyTorch, and ", oom->unallocated_bytes);
    buf_put_z(out, " is reserved by PyTorch but unallocated. If reserved but unallocated memory is "
                   "large try setting ");
    buf_put_z(out, alloc_conf ? "PYTORCH_ALLOC_CONF" : "PYTORCH_CUDA_ALLOC_CONF");
    buf_put_z(out,
              "=expandable_segments:True to avoid fragmentation.  See documentation for Memory "
              "Management  (https://");
    buf_put_z(out, new_url ? "docs.pytorch.org/docs/stable/notes/cuda.html"
                             "#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)"
                           : "pytorch.org/docs/stable/notes/cuda.html#environment-variables)");
}
