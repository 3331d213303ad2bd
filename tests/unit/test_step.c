// The simulated training step: properties over random plans, and what was recorded of it.
// How close it is to real runs is tests/measured/accuracy.py's business.
#include <string.h>

#include "core/allocator/allocator.h"
#include "core/predict/predict.h"
#include "core/replay/moment.h"
#include "core/replay/player.h"
#include "tests/support/jobs.h"
#include "tests/support/t.h"

static uint64_t next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static const char *pick(uint64_t *state, const char *const *words, ptrdiff_t count)
{
    return words[next(state) % (uint64_t)count];
}

// Settings without the context.
struct random_plan {
    struct arena *arena;
    struct str settings;
};

static struct random_plan random_settings(struct arena *a, uint64_t *state)
{
    static const char *const models[] = {"Qwen3-0.6B", "Qwen2.5-0.5B", "Llama-3.2-1B",
                                         "gemma-2-2b", "SmolLM3-3B",   "Phi-4-mini-instruct",
                                         "gemma-3-1b", "Qwen3-30B-A3B"};
    static const char *const machines[] = {"gpu=H200",
                                           "gpu=2xH200",
                                           "gpu=4xA100-80G sp=2",
                                           "gpu=8xH100-80G",
                                           "gpu=8xH200 offload=all",
                                           "gpu=8xH200 cp=2",
                                           "gpu=H200 strategy=ddp",
                                           "gpu=4xH200 strategy=fsdp1"};
    static const char *const losses[] = {"full", "chunked:256", "none"};
    static const char *const switches[] = {"on", "off"};
    struct random_plan r = {.arena = a};
    const char *machine = pick(state, machines, COUNT_OF(machines));
    const char *model = pick(state, models, COUNT_OF(models));
    const char *loss = pick(state, losses, COUNT_OF(losses));
    if (strstr(machine, "fsdp1"))
        loss = losses[0];
    const char *checkpointing = pick(state, switches, COUNT_OF(switches));
    const char *expandable = pick(state, switches, COUNT_OF(switches));
    r.settings =
        str_format(a, "model=%s %s loss=%s checkpointing=%s expandable=%s layers=%d ", model,
                   machine, loss, checkpointing, expandable, (int)(next(state) % 4 + 1));
    return r;
}

// Settings as random_settings made them, in the test's arena, with a context.
static struct prediction predicted_at(struct random_plan r, uint64_t context)
{
    struct str whole =
        str_format(r.arena, "%scontext=%llu", r.settings.p, (unsigned long long)context);
    return predicted_in(r.arena, whole.p);
}

// By requested bytes: torch's allocated bytes also count up to a MiB a block that it did not split
// off, which can fall.
TEST(more_context_never_needs_less)
{
    uint64_t state = 88172645463325252u;
    for (int i = 0; i < 40; i++) {
        uint64_t last = 0, before = state;
        for (uint64_t context = 1024; context <= 8192; context *= 2) {
            state = before;
            struct prediction p = predicted_at(random_settings(test_arena(), &state), context);
            if (p.requested_bytes < last)
                test_failed(__FILE__, __LINE__, "job %d needs less at %llu tokens", i,
                            (unsigned long long)context);
            last = p.requested_bytes;
        }
    }
}

TEST(steps_leave_what_they_found)
{
    uint64_t state = 1442695040888963407u;
    for (int i = 0; i < 40; i++) {
        struct prediction p = predicted_at(random_settings(test_arena(), &state), 2048);
        CHECK_U64((uint64_t)p.steps_done, PREDICT_STEPS);
        CHECK_U64(p.steps[2].end_allocated_bytes, p.steps[1].end_allocated_bytes);
    }
}

static bool same_peaks(const struct step_peak *a, const struct step_peak *b)
{
    return a->allocated_bytes == b->allocated_bytes && a->requested_bytes == b->requested_bytes &&
           a->reserved_bytes == b->reserved_bytes &&
           a->end_allocated_bytes == b->end_allocated_bytes && a->retries == b->retries;
}

static bool same_memory(const struct prediction *a, const struct prediction *b)
{
    bool same =
        a->fits == b->fits && a->steps_done == b->steps_done &&
        a->allocated_bytes == b->allocated_bytes && a->requested_bytes == b->requested_bytes &&
        a->reserved_bytes == b->reserved_bytes && a->floor_bytes == b->floor_bytes &&
        a->reserved_there_bytes == b->reserved_there_bytes && a->phase == b->phase &&
        a->step == b->step && a->oom_kind == b->oom_kind && a->verdict.grade == b->verdict.grade &&
        memcmp(a->by_kind, b->by_kind, sizeof a->by_kind) == 0;
    for (int i = 0; i < a->steps_done; i++)
        same = same && same_peaks(&a->steps[i], &b->steps[i]);
    return same && same_peaks(&a->load, &b->load) && same_peaks(&a->save, &b->save);
}

static void compare_without_clock(struct arena *a, const char *settings)
{
    struct job *job = NEW(a, struct job, 1);
    struct prediction timed = {0}, untimed = {0}, floor = {0};
    struct error e;
    bool ok = job_of(job, a, settings, &e) && predict_fit(&timed, a, job, &e) &&
              predict_memory(&untimed, a, job, &e) && predict_floor(&floor, a, job, &e);
    if (!ok || !same_memory(&timed, &untimed) || timed.floor_bytes != floor.floor_bytes)
        test_failed(__FILE__, __LINE__, "%s has other memory without a clock", settings);
    CHECK(timed.time.seconds > 0);
}

TEST(nobodys_clock_changes_the_memory)
{
    uint64_t state = 6364136223846793005u;
    for (int i = 0; i < 40; i++) {
        struct arena *a = test_arena();
        struct random_plan r = random_settings(a, &state);
        struct str limited =
            str_format(a, "%scontext=4096 memory-limit=%dGiB", r.settings.p, 2 + i % 40);
        compare_without_clock(a, limited.p);
    }
}

static void ends_above(struct arena *a, struct job *job, uint64_t most, uint64_t in_the_end)
{
    struct prediction part = {0};
    struct error e;
    CHECK(predict_within(&part, a, job, most, &e));
    CHECK(part.passed && part.reserved_bytes > most);
    CHECK(part.reserved_bytes <= in_the_end);
}

// As without an end where nothing passes it; else more than that is reserved, and no more than is
// reserved in the end.
TEST(a_prediction_ends_where_more_is_reserved_than_is_asked_about)
{
    struct arena *a = test_arena();
    struct job *job = NEW(a, struct job, 1);
    struct error e = {0};
    CHECK(job_of(job, a, "model=Qwen3-0.6B gpu=8xH200 strategy=fsdp2 context=4096 accum=4", &e));
    struct prediction whole = {0}, same = {0};
    CHECK(predict_fit(&whole, a, job, &e) && whole.fits);
    CHECK(predict_within(&same, a, job, whole.reserved_bytes, &e) && !same.passed);
    CHECK(same_memory(&whole, &same));
    for (uint64_t most = whole.reserved_bytes - 1; most > MIB; most /= 2)
        ends_above(a, job, most, whole.reserved_bytes);
}

// Gradients of ddp are summed after the last micro-batch; the buckets are there anyway.
TEST(ddp_talks_once_a_step)
{
    struct arena *a = test_arena();
    struct job *job = NEW(a, struct job, 1);
    struct prediction once = {0}, each = {0};
    struct error e = {0};
    CHECK(job_of(
        job, a, "recipe=trl model=Qwen3-0.6B gpu=8xRTX4090 strategy=ddp context=1024 accum=8", &e));
    CHECK(job->reduces_last && predict_fit(&once, a, job, &e));
    job->reduces_last = false;
    CHECK(predict_fit(&each, a, job, &e));
    CHECK_U64(once.reserved_bytes, each.reserved_bytes);
    CHECK(once.time.seconds < 0.9 * each.time.seconds);
    CHECK(
        job_of(job, a, "recipe=trl model=Qwen3-0.6B gpu=8xRTX4090 strategy=ddp context=1024", &e));
    CHECK(!job->reduces_last);
}

// The whole history, played once more up to its peak.
TEST(who_is_told_to_live_at_the_peak_does)
{
    uint64_t state = 1442695040888963407u;
    for (int i = 0; i < 20; i++) {
        struct arena *a = test_arena();
        struct random_plan r = random_settings(a, &state);
        struct str whole = str_format(a, "%scontext=2048", r.settings.p);
        struct prediction p = predicted_in(a, whole.p);
        struct trace history = history_in(a, whole.p);
        struct replay_request q = {.trace = &history, .options = allocator_options_default(11)};
        struct replay_result all = {0}, peak = {0};
        uint64_t by_kind[MEMORY_KINDS] = {0};
        struct error e;
        q.options.expandable = strstr(whole.p, "expandable=on");
        CHECK(p.fits && replay_run(&all, a, &q, &e));
        q.stop_after = all.allocated.event + 1;
        CHECK(replay_run(&peak, a, &q, &e));
        moment_by_tag(peak.allocator, by_kind, MEMORY_KINDS);
        CHECK_U64(p.allocated_bytes, all.allocated.bytes);
        CHECK_U64(p.reserved_bytes, all.reserved.bytes);
        CHECK_U64(p.reserved_there_bytes, peak.allocator->stats.reserved_bytes.current);
        if (memcmp(by_kind, p.by_kind, sizeof by_kind) != 0)
            test_failed(__FILE__, __LINE__, "others live at the peak of %s", whole.p);
    }
}

TEST(more_ranks_never_need_more_state)
{
    static const char *const machines[] = {"2xH200", "4xH200", "8xH200", "2x8xH200"};
    uint64_t last = UINT64_MAX;
    for (ptrdiff_t i = 0; i < COUNT_OF(machines); i++) {
        struct arena *a = test_arena();
        struct str text = str_format(a, "model=Qwen3-1.7B context=2048 gpu=%s", machines[i]);
        struct prediction p = predicted_in(a, text.p);
        CHECK(p.steps[2].end_allocated_bytes <= last);
        last = p.steps[2].end_allocated_bytes;
    }
}

TEST(ddp_holds_every_gradient_twice)
{
    struct prediction single = predicted_in(test_arena(), "model=Qwen3-0.6B gpu=H200 context=2048");
    struct prediction ddp =
        predicted_in(test_arena(), "model=Qwen3-0.6B gpu=H200 context=2048 strategy=ddp");
    CHECK_U64(ddp.requested_bytes - single.requested_bytes, UINT64_C(2) * 596049920);
    CHECK(ddp.outside.nccl_bytes > single.outside.nccl_bytes);
}

// The first request of a free that is not completed at once, and its completion.
struct late_free {
    ptrdiff_t requested, completed; // -1: none
};

static struct late_free find_late_free(const struct trace *t, ptrdiff_t from)
{
    for (ptrdiff_t i = from; i < t->count; i++) {
        if (t->events[i].kind != EVENT_FREE_REQUESTED)
            continue;
        for (ptrdiff_t j = i + 1; j < t->count; j++)
            if (t->events[j].kind == EVENT_FREE_COMPLETED &&
                t->events[j].block == t->events[i].block)
                return (struct late_free){i, j};
        return (struct late_free){i, -1};
    }
    return (struct late_free){-1, -1};
}

TEST(a_free_waits_for_the_stream_that_uses_the_block)
{
    enum { OTHER = 1 };
    struct trace trace = trace_in(test_arena());
    struct machine m = machine_with(test_arena(), &trace);
    struct storage *used = machine_take(&m, 512, MEMORY_WORKING);
    machine_wait(&m, OTHER, STREAM_COMPUTE);
    uint64_t then = m.clock[OTHER];
    machine_drop_after(&m, used, OTHER);
    CHECK_U64(trace.events[trace.count - 1].kind, EVENT_FREE_REQUESTED);
    machine_scratch(&m, 512);
    CHECK_U64((uint64_t)find_late_free(&trace, 0).completed, (uint64_t)-1);
    machine_synchronize(&m, then);
    machine_scratch(&m, 512);
    CHECK_U64((uint64_t)find_late_free(&trace, 0).completed, (uint64_t)trace.count - 3);
}

TEST(fsdp1_waits_with_frees_but_completes_those_of_a_step_in_the_next)
{
    struct trace t =
        history_in(test_arena(), "model=Qwen3-0.6B gpu=2xH200 context=2048 strategy=fsdp1");
    ptrdiff_t last_step = 0, found = 0;
    for (ptrdiff_t i = 0; i < t.count; i++)
        if (t.events[i].kind == EVENT_RESET_PEAKS)
            last_step = i;
    for (struct late_free f = {-1, -1};; found++) {
        f = find_late_free(&t, f.requested + 1);
        if (f.requested < 0 || f.requested > last_step)
            break;
        CHECK(f.completed > f.requested);
    }
    CHECK(found > 0);
}

// What a step reaches when the whole history is played, which leaves no step out.
static void play_steps(struct step_peak peaks[PREDICT_STEPS], struct arena scratch,
                       const struct trace *t, uint64_t limit_bytes)
{
    struct error e;
    struct replay_result result = {0};
    struct player player = {.result = &result};
    struct replay_request q = {.trace = t, .options = allocator_options_default(TORCH_NEWEST)};
    const struct allocator_stats *stats;
    int step = -1;
    q.options.limited = true;
    q.options.limit_bytes = limit_bytes;
    CHECK(player_start(&player, &scratch, &q, &e));
    stats = &player.allocator->stats;
    for (ptrdiff_t i = 0; i < t->count; i++) {
        if (t->events[i].kind == EVENT_RESET_PEAKS)
            step++;
        CHECK(player_step(&player, i));
        if (step >= 0 && step < PREDICT_STEPS)
            peaks[step] = (struct step_peak){
                stats->allocated_bytes.peak, stats->requested_bytes.peak,
                stats->reserved_bytes.peak, stats->allocated_bytes.current, stats->retries};
    }
}

static void check_steps(struct arena *a, const char *settings)
{
    struct job *job = NEW(a, struct job, 1);
    struct step_peak peaks[PREDICT_STEPS] = {0};
    struct prediction memory = {0}, timed = {0};
    struct error e;
    CHECK(job_of(job, a, settings, &e) && predict_memory(&memory, a, job, &e));
    CHECK(predict_fit(&timed, a, job, &e));
    struct trace t = history_in(a, settings);
    play_steps(peaks, *a, &t, memory.limit_bytes);
    CHECK(memory.steps_done == PREDICT_STEPS && timed.steps_done == PREDICT_STEPS);
    CHECK(!memcmp(memory.steps, peaks, sizeof peaks));
    CHECK(!memcmp(timed.steps, peaks, sizeof peaks));
}

TEST(a_step_that_is_left_out_is_as_if_it_was_played)
{
    static const char *const jobs[] = {
        "model=Qwen3-8B gpu=H200 context=4096 layers=6", // the second step grows
        "model=Mistral-7B-v0.3 gpu=B200 context=2048",   // the third does
        "model=Llama-3.2-1B gpu=H200 context=8192 accum=2",
        "model=Qwen3-0.6B gpu=H200 context=4096 lora=8 checkpointing=off",
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(jobs); i++)
        check_steps(test_arena(), jobs[i]);
}

struct counter {
    ptrdiff_t played;
    struct block block; // every request gets it
};

static struct block *grows_at_the_first(void *player, const struct request *request, bool *grew)
{
    struct counter *c = player;
    *grew = !c->played++;
    c->block.handle = request->handle;
    return &c->block;
}

static void count_block(void *player, struct block *b)
{
    struct counter *c = player;
    c->played += b == &c->block;
}

static void count_late(void *player, struct block *b, uint32_t handle)
{
    (void)handle;
    count_block(player, b);
}

static void count_mark(void *player, enum event_kind kind)
{
    struct counter *c = player;
    c->played += kind == EVENT_EMPTY_CACHE;
}

TEST(an_event_is_played_when_it_is_made)
{
    static const struct playing counting = {grows_at_the_first, count_block, count_block,
                                            count_late, count_mark};
    struct counter c = {0};
    struct trace trace = trace_in(test_arena());
    struct machine m = machine_with(test_arena(), &trace);
    m.play = &counting;
    m.player = &c;
    struct storage *first = machine_take(&m, 512, MEMORY_WORKING);
    CHECK(m.grew && c.played == 1);
    struct storage *second = machine_take(&m, 512, MEMORY_WORKING);
    CHECK(!m.grew && c.played == 2);
    machine_drop(&m, first);
    machine_drop_after(&m, second, STREAM_COMPUTE);
    machine_synchronize(&m, m.clock[STREAM_COMPUTE]);
    machine_mark(&m, EVENT_EMPTY_CACHE);
    machine_scratch(&m, 512);
    CHECK(c.played == trace.count && trace.count == 8);
}

// As in the recording t07: the buffer of the first layer to be reduced, and its part of it, come
// from the driver; by the next allocation the frees of the layer's eleven gradients are completed.
TEST(fsdp1s_card_catches_up_while_the_driver_makes_a_buffer)
{
    static const uint64_t wide = UINT64_C(771785728);
    struct trace t =
        history_in(test_arena(), "model=Qwen3-8B gpu=8xH200 context=8192 strategy=fsdp1 layers=6");
    uint64_t completed[8] = {0}; // after each such buffer, before the second allocation
    int buffers = 0, allocations = 0;
    for (ptrdiff_t i = 0; i < t.count && buffers < COUNT_OF(completed); i++) {
        const struct event *e = &t.events[i];
        bool is_buffer = e->kind == EVENT_ALLOC && e->bytes == wide && e->stream != STREAM_COMPUTE;
        allocations = is_buffer ? 0 : allocations + (e->kind == EVENT_ALLOC);
        buffers += is_buffer;
        if (buffers && allocations < 2)
            completed[buffers - 1] +=
                e->kind == EVENT_FREE_COMPLETED && e->stream == STREAM_COMPUTE;
    }
    CHECK_U64(completed[0], 11);
    CHECK_U64(completed[1], 0); // the buffer is there
}

TEST(what_fits_under_a_limit_fits_under_a_larger_one)
{
    bool fitted = false;
    for (uint64_t gib = 4; gib <= 24; gib += 2) {
        struct arena *a = test_arena();
        struct str text = str_format(a,
                                     "model=Qwen3-0.6B context=8192 gpu=2xH200 expandable=on "
                                     "memory-limit=%lluGiB",
                                     (unsigned long long)gib);
        struct prediction p = predicted_in(a, text.p);
        CHECK(p.fits || !fitted);
        fitted = p.fits;
    }
    CHECK(fitted);
}

// Recorded on an H200 with torch 2.11 and transformers 5.17; the two runs of the whole model are in
// tests/runs.
TEST(a_mixture_of_experts_takes_what_was_recorded)
{
    struct prediction p = predicted_in(
        test_arena(), "model=Qwen3-30B-A3B layers=3 gpu=32xH200 context=4096 precision=mixed");
    CHECK_U64((uint64_t)p.steps_done, PREDICT_STEPS);
    CHECK_U64(p.steps[0].allocated_bytes, UINT64_C(8557359616));
    CHECK_U64(p.steps[1].allocated_bytes, UINT64_C(9213847040));
    CHECK_U64(p.steps[2].end_allocated_bytes, 1003442688);
}

// Recorded likewise: attention of all pairs of tokens, windows of half of them, four norms a layer.
TEST(gemma_takes_what_was_recorded)
{
    struct prediction p = predicted_in(
        test_arena(), "model=gemma-2-2b layers=4 gpu=H200 context=6144 tied=off attention=eager");
    CHECK_U64(p.steps[1].allocated_bytes, UINT64_C(31450309632));
    CHECK_U64(p.steps[1].reserved_bytes, UINT64_C(39743127552));
    CHECK_U64(p.steps[2].end_allocated_bytes, UINT64_C(9015942144));
}

// Recorded likewise: DeepSeek-V3's widths with fewer experts and layers, one of them dense.
TEST(latent_attention_takes_what_was_recorded)
{
    struct prediction p = predicted_in(
        test_arena(),
        "config.model_type=deepseek_v3 config.hidden_size=7168 config.num_hidden_layers=61 "
        "config.num_attention_heads=128 config.intermediate_size=18432 config.n_routed_experts=32 "
        "config.first_k_dense_replace=1 layers=2 gpu=H200 context=2048");
    CHECK_U64(p.steps[0].allocated_bytes, UINT64_C(40850251264));
    CHECK_U64(p.steps[1].reserved_bytes, UINT64_C(43260051456));
    CHECK_U64(p.steps[2].end_allocated_bytes, UINT64_C(24537525760));
}

// model_type decides what runs: the same shapes as Llama and as Granite.
static struct trace history_as(const char *model_type, const char *more)
{
    struct arena *a = test_arena();
    struct str settings = str_format(
        a,
        "config.model_type=%s config.hidden_size=1024 config.num_hidden_layers=2 "
        "config.num_attention_heads=8 config.intermediate_size=4096 gpu=H200 context=2048 %s",
        model_type, more);
    return history_in(a, settings.p);
}

static ptrdiff_t allocations_of(const struct trace *t, uint64_t bytes)
{
    ptrdiff_t count = 0;
    for (ptrdiff_t i = 0; i < t->count; i++)
        count += t->events[i].kind == EVENT_ALLOC && t->events[i].bytes == bytes;
    return count;
}

// A product and its gradient in each step for the embeddings and twice in each layer, and for the
// logits (scripts/compare_operators.py lays all of it beside torch).
TEST(granite_multiplies_by_numbers)
{
    const uint64_t hidden = UINT64_C(2) * 2048 * 1024, logits = UINT64_C(2) * 2048 * 32000;
    struct trace plain = history_as("llama", "checkpointing=off");
    ptrdiff_t hidden_before = allocations_of(&plain, hidden);
    ptrdiff_t logits_before = allocations_of(&plain, logits);
    struct trace granite = history_as("granite", "checkpointing=off");
    CHECK_U64((uint64_t)(allocations_of(&granite, hidden) - hidden_before),
              UINT64_C(3) * 2 * (1 + 2 * 2));
    CHECK_U64((uint64_t)(allocations_of(&granite, logits) - logits_before), UINT64_C(3) * 2);
}

// native_dropout's mask has a byte a value: behind attention and MLP of two layers and behind the
// embedding, in three steps.
TEST(what_is_dropped_is_kept_as_bytes)
{
    const uint64_t mask = UINT64_C(2048) * 1024;
    struct trace without = history_as("starcoder2", "checkpointing=off");
    ptrdiff_t before = allocations_of(&without, mask);
    struct trace with = history_as("starcoder2", "checkpointing=off config.residual_dropout=0.1 "
                                                 "config.embedding_dropout=0.1");
    CHECK_U64((uint64_t)(allocations_of(&with, mask) - before), UINT64_C(3) * (2 * 2 + 1));
}

// Logits of each of four chunks in three steps: product, quotient, tanh and product again, as often
// recomputed, and a gradient of each. TRL 1.13 does it in fp32: with the cast, log-softmax and what
// the entropy takes that is seven in each pass, and five gradients.
TEST(chunks_are_capped_as_all_logits_are)
{
    static const char settings[] = "model=gemma-2-2b layers=2 gpu=H200 context=1024";
    const uint64_t logits = UINT64_C(2) * 256 * 256000;
    struct arena *a = test_arena();
    struct trace t = history_in(a, str_format(a, "%s loss=chunked:256", settings).p);
    CHECK_U64((uint64_t)allocations_of(&t, logits), UINT64_C(4) * 3 * (4 + 4 + 4));
    a = test_arena();
    t = history_in(a, str_format(a, "%s recipe=trl@1.13", settings).p);
    CHECK_U64((uint64_t)allocations_of(&t, 2 * logits), UINT64_C(4) * 3 * (7 + 7 + 5));
}

// sdpa is what transformers 5.17 gives Gemma 2: no scores of all pairs, and masks of booleans for
// windows only. FlashAttention's kernels need not even those.
TEST(attention_decides_what_pairs_of_tokens_take)
{
    const uint64_t pairs = UINT64_C(6144) * 6144, scores = UINT64_C(16) * pairs;
    static const struct {
        const char *attention;
        bool scores, mask;
    } rows[] = {{"auto", false, true},
                {"sdpa", false, true},
                {"eager", true, true},
                {"flash2", false, false}};
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        struct arena *a = test_arena();
        struct trace t = history_in(
            a, str_format(a, "model=gemma-2-2b layers=2 gpu=H200 context=6144 attention=%s",
                          rows[i].attention)
                   .p);
        CHECK((allocations_of(&t, scores) > 0) == rows[i].scores);
        CHECK((allocations_of(&t, pairs) > 0) == rows[i].mask);
    }
}

// Keys, values and queries are picked from rows of which some are shorter, in the forward pass and
// when it is computed again; sdpa has a mask of all pairs for that (transformers 5.17,
// modeling_flash_attention_utils.py, _upad_input and _get_unpad_data).
TEST(the_package_is_given_copies_without_what_pads_them)
{
    static const char job[] = "model=Qwen3-0.6B layers=2 gpu=H200 context=1536 batch=3 recipe=trl ";
    const uint64_t tokens = UINT64_C(3) * 1536, pairs = tokens * 1536, queries = tokens * 16 * 128;
    struct arena *a = test_arena();
    struct trace full = history_in(a, str_format(a, "%sattention=flash2", job).p);
    struct trace padded = history_in(a, str_format(a, "%sattention=flash2 batching=padded", job).p);
    struct trace masked = history_in(a, str_format(a, "%sbatching=padded", job).p);
    CHECK(allocations_of(&masked, pairs) > 0);
    CHECK(allocations_of(&padded, pairs) == 0);
    CHECK(allocations_of(&padded, 2 * queries) > allocations_of(&full, 2 * queries));
    const ptrdiff_t sorted = 12; // two buffers each for queries, keys and values in two layers
    CHECK(allocations_of(&padded, 8 * tokens) >= allocations_of(&full, 8 * tokens) + sorted);
}

// TRL hands a mask of rows to the model, with which windows are joined: booleans for every row. A
// loop that hands none has one for all (masking_utils.py, sdpa_mask).
TEST(a_window_has_a_mask_of_every_row_that_is_handed_one)
{
    static const char windows[] = "model=gemma-3-1b layers=2 gpu=H200 context=1536 batch=3 recipe=";
    const uint64_t pairs = UINT64_C(1536) * 1536;
    struct arena *a = test_arena();
    struct trace plain = history_in(a, str_format(a, "%stransformers", windows).p);
    struct trace handed = history_in(a, str_format(a, "%strl", windows).p);
    CHECK(allocations_of(&plain, pairs) > 0);
    CHECK(allocations_of(&plain, 3 * pairs) == 0);
    CHECK(allocations_of(&handed, 3 * pairs) > 0);
}

// masking_utils.py, eager_mask: numbers of what the booleans say, for every row once, and scores of
// all heads beside them, as with full rows.
TEST(eager_attention_masks_rows_that_differ)
{
    static const char eager[] = "model=Qwen3-0.6B layers=2 gpu=H200 context=1024 batch=3 "
                                "recipe=trl attention=eager batching=";
    const uint64_t pairs = UINT64_C(1024) * 1024;
    struct arena *a = test_arena();
    struct trace full = history_in(a, str_format(a, "%sfull", eager).p);
    struct trace padded = history_in(a, str_format(a, "%spadded", eager).p);
    struct trace packed = history_in(a, str_format(a, "%spacked", eager).p);
    CHECK_U64((uint64_t)allocations_of(&padded, 3 * pairs * 4),
              (uint64_t)allocations_of(&full, 3 * pairs * 4)); // in fp32, as weights are
    CHECK_U64((uint64_t)allocations_of(&padded, 3 * pairs * 16 * 4),
              (uint64_t)allocations_of(&full, 3 * pairs * 16 * 4));
    CHECK(allocations_of(&packed, 9 * pairs * 16 * 4) > 0); // one row of all three
}

// accelerate's prepare_model with evaluation_mode: the reference is in no DDP, and has no buckets.
TEST(a_reference_has_no_reducer)
{
    static const char replicas[] = "model=Qwen3-0.6B layers=2 gpu=2xH200 context=512 recipe=trl "
                                   "strategy=ddp task=";
    struct arena *a = test_arena();
    struct trace alone = history_in(a, str_format(a, "%sreward", replicas).p);
    struct trace beside = history_in(a, str_format(a, "%sdpo", replicas).p);
    uint64_t all = UINT64_C(4) * (UINT64_C(151936) * 1024 + 1024 + 2 * UINT64_C(15730944));
    CHECK_U64((uint64_t)allocations_of(&beside, all), 1);
    CHECK_U64((uint64_t)allocations_of(&alone, all), 0); // it has a score's weights too
}

// A window as long as the context already takes a mask, and keys and values for every head.
TEST(a_window_takes_a_mask)
{
    uint64_t last = 0;
    for (uint64_t context = 4095; context <= 4096; context++) {
        struct arena *a = test_arena();
        struct str text = str_format(a,
                                     "model=Mistral-7B-v0.1 layers=2 gpu=8xH200 loss=none "
                                     "checkpointing=off context=%llu",
                                     (unsigned long long)context);
        struct prediction p = predicted_in(a, text.p);
        CHECK(!last || p.requested_bytes > last + 2 * context * context);
        last = p.requested_bytes;
    }
}

// Every kind of layer takes its own unit of shards.
TEST(layers_with_and_without_experts_mix)
{
    static const char shape[] =
        "config.model_type=qwen3_moe config.hidden_size=512 config.num_hidden_layers=4 "
        "config.num_attention_heads=8 config.num_key_value_heads=4 config.head_dim=64 "
        "config.intermediate_size=1024 config.moe_intermediate_size=256 config.num_experts=16 "
        "config.num_experts_per_tok=4 config.vocab_size=4096 gpu=4xH200 context=2048 ";
    uint64_t last = 0;
    for (int step = 4; step >= 1; step /= 2) { // 1, 2 and 4 layers with experts
        struct arena *a = test_arena();
        struct str text = str_format(a, "%sconfig.decoder_sparse_step=%d", shape, step);
        struct prediction p = predicted_in(a, text.p);
        CHECK(p.steps[2].end_allocated_bytes > last);
        CHECK_U64(p.steps[2].end_allocated_bytes, p.steps[1].end_allocated_bytes);
        last = p.steps[2].end_allocated_bytes;
    }
}
