// A vision tower before it runs: its parameters, which of them are trained, and how its images are
// cut into what attention sees at once.
#include <string.h>

#include "core/base/num.h"
#include "core/models/adapters.h"
#include "core/models/parameters.h"
#include "core/models/vision/tower.h"

static void add_to(struct trainer *t, struct vision_parameters *p, const struct tensor *row)
{
    int number = parameter_add(t, row);
    ASSERT(row->role);
    memcpy((char *)p + row->role, &number, sizeof number);
}

// All rows of a place for one block after another.
static void add_parts(struct trainer *t, struct vision_parameters *parts, enum place place)
{
    const struct parameters *all = &t->job->parameters;
    bool more = true;
    for (int i = 0; more; i++) {
        int first = t->graph.parameter_count;
        more = false;
        for (ptrdiff_t j = 0; j < all->tensor_count; j++)
            if (all->tensors[j].place == place && (uint64_t)i < all->tensors[j].copies) {
                add_to(t, &parts[i], &all->tensors[j]);
                parts[i].first = first;
                more = true;
            }
    }
}

static void add_rows(struct trainer *t, struct tower *w)
{
    const struct parameters *all = &t->job->parameters;
    enum place last = PLACE_MODEL;
    for (ptrdiff_t i = 0; i < all->tensor_count; i++) {
        const struct tensor *row = &all->tensors[i];
        if (row->part != PART_VISION)
            continue;
        if (row->place == PLACE_MODEL)
            add_to(t, &w->stem, row);
        else if (row->place != last)
            add_parts(t, row->place == PLACE_VISION_BLOCK ? w->blocks : w->mergers, row->place);
        last = row->place;
    }
}

bool has_grids(const struct trainer *t)
{
    return t->tower && !model_has(&t->job->model, FEATURE_VISION_SIGLIP);
}

bool has_windows(const struct trainer *t)
{
    return model_has(&t->job->model, FEATURE_VISION_WINDOWS);
}

static void add_piece(struct pieces *p, uint64_t patches)
{
    p->patches[p->count++] = patches;
}

// get_vision_window_index: merged patches in squares, those at the edges smaller.
static void cut_image(struct tower *w, struct image_grid grid, const struct vision *v)
{
    uint64_t merge = u64_most(v->merge, 1);
    uint64_t high = grid.height / merge, wide = grid.width / merge;
    uint64_t side = image_window(v);
    add_piece(&w->whole, grid.height * grid.width);
    for (uint64_t y = 0; y < high; y += side)
        for (uint64_t x = 0; x < wide; x += side)
            add_piece(&w->windows,
                      u64_least(side, high - y) * u64_least(side, wide - x) * merge * merge);
}

static void cut_images(struct trainer *t, struct tower *w)
{
    const struct job *job = t->job;
    struct arena *a = t->machine->arena;
    struct image_grid grid;
    w->images = job->images * job_rows(job);
    if (!w->images || !image_grid_of(&grid, &job->model, job->image_width, job->image_height))
        return;
    w->patches = grid.height * grid.width * w->images;
    w->whole.patches = NEW(a, uint64_t, (ptrdiff_t)w->images);
    w->windows.patches =
        NEW(a, uint64_t, (ptrdiff_t)(w->images * image_windows(&job->model, grid)));
    for (uint64_t i = 0; i < w->images; i++)
        cut_image(w, grid, &job->model.vision);
}

void tower_build(struct trainer *t)
{
    const struct vision *v = vision_of(t);
    struct arena *a = t->machine->arena;
    ptrdiff_t depth = (ptrdiff_t)v->depth, mergers = (ptrdiff_t)v->deepstack;
    if (!depth)
        return;
    struct tower *w = t->tower = NEW(a, struct tower, 1);
    w->blocks = NEW(a, struct vision_parameters, depth);
    w->mergers = NEW(a, struct vision_parameters, mergers);
    w->calls = NEW(a, struct block_call, depth);
    memset(&w->stem, -1, sizeof w->stem);
    memset(w->blocks, -1, sizeof *w->blocks * (size_t)depth);
    for (ptrdiff_t i = 0; i < mergers; i++)
        memset(&w->mergers[i], -1, sizeof *w->mergers);
    for (int i = 0; i < (int)v->depth; i++)
        w->calls[i] = (struct block_call){t, i};
    w->first = t->graph.parameter_count;
    add_rows(t, w);
    w->end = t->graph.parameter_count;
    cut_images(t, w);
}

static void leave_idle(struct trainer *t, int first, int last)
{
    for (int i = first; i <= last; i++) {
        struct parameter *p = &t->graph.parameters[i];
        p->idle = !p->frozen;
        p->frozen = true;
    }
}

// What gets no gradient has no optimizer state either, be it frozen or idle, as a pooling head is
// and a feature's merger where no layer is left for it.
// And a model that is made on the card (from_config, as in tests/runs/h200_vl.jsonl) has two heads
// for a moment, before one is tied to the embedding.
void tower_settle(struct trainer *t)
{
    const struct tower *w = t->tower;
    struct graph *g = &t->graph;
    if (!w)
        return;
    if (t->head < 0 && g->parameters[t->embedding].weight)
        machine_scratch(t->machine, g->parameters[t->embedding].weight->bytes);
    for (int i = 0; i < g->parameter_count; i++) {
        bool visual = i >= w->first && i < w->end;
        g->parameters[i].frozen = t->job->freeze == (visual ? FREEZE_VISION : FREEZE_LANGUAGE);
    }
    if (!w->images)
        leave_idle(t, w->first, w->end - 1);
    if (w->stem.pooling >= 0)
        leave_idle(t, w->stem.pooling, w->stem.pooling_end);
    for (uint64_t i = t->job->model.layers; i < vision_of(t)->deepstack; i++)
        leave_idle(t, w->mergers[i].norm, w->mergers[i].fc2_bias);
}

struct span tower_span(const struct trainer *t)
{
    const struct tower *w = t->tower;
    return w ? (struct span){w->first, w->end} : (struct span){0, 0};
}

struct span tower_block(const struct trainer *t, int block)
{
    const struct vision_parameters *p = t->tower->blocks;
    bool last = block + 1 == (int)vision_of(t)->depth;
    return (struct span){p[block].first, last ? p[block].fc2_bias + 1 : p[block + 1].first};
}

// Of Qwen's towers.
static void adapt_tower(struct trainer *t)
{
    const struct tower *w = t->tower;
    const struct vision *v = vision_of(t);
    for (uint64_t i = 0; i < v->depth; i++) {
        adapter_add(t, w->blocks[i].qkv);
        adapter_add(t, w->blocks[i].proj);
        if (has_windows(t)) {
            adapter_add(t, w->blocks[i].gate);
            adapter_add(t, w->blocks[i].up);
        } else {
            adapter_add(t, w->blocks[i].fc1);
        }
        adapter_add(t, w->blocks[i].fc2);
    }
    adapter_add(t, w->stem.fc1);
    adapter_add(t, w->stem.fc2);
    for (uint64_t i = 0; i < v->deepstack; i++) {
        adapter_add(t, w->mergers[i].fc1);
        adapter_add(t, w->mergers[i].fc2);
    }
}

static void adapt_siglip(struct trainer *t)
{
    const struct tower *w = t->tower;
    for (uint64_t i = 0; i < vision_of(t)->depth; i++) {
        const struct vision_parameters *p = &w->blocks[i];
        const int linear[] = {p->k, p->v, p->q, p->proj, p->fc1, p->fc2};
        for (int j = 0; j < COUNT_OF(linear); j++)
            adapter_add(t, linear[j]);
    }
}

// Layers of a tower that are called as the text's are.
static void adapt_named(struct trainer *t)
{
    bool siglip = model_has(&t->job->model, FEATURE_VISION_SIGLIP), windows = has_windows(t);
    for (uint64_t i = 0; (siglip || windows) && i < vision_of(t)->depth; i++) {
        const struct vision_parameters *p = &t->tower->blocks[i];
        const int of_siglip[TARGET_COUNT] = {p->q, p->k, p->v, -1, -1, -1, -1};
        const int of_windows[TARGET_COUNT] = {-1, -1, -1, -1, p->gate, p->up, p->fc2};
        for (int j = 0; j < TARGET_COUNT; j++) {
            int layer = siglip ? of_siglip[j] : of_windows[j];
            if (layer >= 0 && t->job->lora_targets & 1u << j)
                adapter_add(t, layer);
        }
    }
}

// peft's all-linear reaches the tower, too, and so does a name that its layers share. Without
// images adapters there get no gradient.
void tower_adapters(struct trainer *t)
{
    const struct tower *w = t->tower;
    const struct job *job = t->job;
    int first = t->graph.parameter_count;
    if (!w || job->freeze == FREEZE_VISION)
        return;
    if (job->lora_targets != LORA_ALL_TARGETS)
        adapt_named(t);
    else if (model_has(&job->model, FEATURE_VISION_SIGLIP))
        adapt_siglip(t);
    else
        adapt_tower(t);
    if (!w->images)
        leave_idle(t, first, t->graph.parameter_count - 1);
}

// modeling_utils.py, enable_input_require_grads: of the two towers it finds the embedding of
// Qwen2.5-VL's (_input_embed_layer).
bool has_leaf(const struct trainer *t)
{
    return t->graph.embedding_is_leaf && has_windows(t);
}

void tower_buffers(struct trainer *t)
{
    const struct vision *v = vision_of(t);
    if (t->tower && !has_grids(t)) // position_ids
        machine_take(t->machine, 8 * v->positions, MEMORY_PARAMETERS);
    for (int i = 0; has_grids(t) && i < 2; i++) // frequencies, and a copy
        machine_take(t->machine, v->hidden / v->heads, MEMORY_PARAMETERS);
}
