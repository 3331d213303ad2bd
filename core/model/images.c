// What an image becomes, by the rules of the models' own processors: how it is resized, the patches
// that it is cut into, and the tokens of the text that it takes.
#include "core/model/model.h"

#include "core/base/num.h"

// preprocessor_config.json of the released models: the fewest and the most pixels of an image.
struct pixels {
    feature_set tower;
    uint64_t fewest, most;
};
static const struct pixels pixels[] = {
    {FEATURE_VISION_QWEN3, 65536, 16777216},  // Qwen3-VL-2B-Instruct to Qwen3-VL-235B-A22B-Instruct
    {FEATURE_VISION_WINDOWS, 3136, 12845056}, // Qwen2.5-VL-3B-Instruct to Qwen2.5-VL-72B-Instruct
};

enum { MOST_ASPECT = 200 };

// Python's round: halves go to the even neighbour.
static uint64_t rounded(uint64_t a, uint64_t b)
{
    uint64_t whole = a / b, rest = a % b;
    return whole + (2 * rest > b || (2 * rest == b && whole % 2));
}

static uint64_t root_below(uint64_t n)
{
    uint64_t low = 0, high = (uint64_t)1 << 31;
    while (low + 1 < high) {
        uint64_t middle = (low + high) / 2;
        if (middle * middle <= n)
            low = middle;
        else
            high = middle;
    }
    return low;
}

// transformers 5.17, image_processing_qwen2_vl.py, smart_resize: both sides to multiples of a
// merged patch, near the image's shape, with no fewer and no more pixels than allowed.
static struct image_grid resized(uint64_t width, uint64_t height, uint64_t factor,
                                 const struct pixels *p)
{
    struct image_grid g = {rounded(height, factor), rounded(width, factor)};
    uint64_t area = g.height * g.width * factor * factor;
    if (area > p->most) {
        g.height = root_below(height * p->most / (width * factor * factor));
        g.width = root_below(width * p->most / (height * factor * factor));
    } else if (area < p->fewest) {
        uint64_t high = u64_divide_up(height * p->fewest, width * factor * factor);
        uint64_t wide = u64_divide_up(width * p->fewest, height * factor * factor);
        g.height = root_below(high - 1) + 1;
        g.width = root_below(wide - 1) + 1;
    }
    return (struct image_grid){u64_most(g.height, 1), u64_most(g.width, 1)};
}

// SigLIP's images are all of one size, as many patches as there are positions.
static struct image_grid fixed_grid(const struct vision *v)
{
    uint64_t side = root_below(v->positions);
    return (struct image_grid){side, side};
}

bool image_grid_of(struct image_grid *grid, const struct model *m, uint64_t width, uint64_t height)
{
    const struct vision *v = &m->vision;
    uint64_t factor = v->patch * v->merge;
    if (model_has(m, FEATURE_VISION_SIGLIP)) {
        *grid = fixed_grid(v);
        return true;
    }
    if (u64_most(width, height) > MOST_ASPECT * u64_least(width, height))
        return false;
    int row = model_has(m, FEATURE_VISION_WINDOWS);
    ASSERT(model_has(m, pixels[row].tower));
    *grid = resized(width, height, factor, &pixels[row]);
    grid->height *= v->merge;
    grid->width *= v->merge;
    return true;
}

uint64_t image_tokens(const struct model *m, struct image_grid grid)
{
    enum { SIGLIP_TOKENS = 256 }; // mm_tokens_per_image of every released Gemma 3
    if (model_has(m, FEATURE_VISION_SIGLIP))
        return SIGLIP_TOKENS;
    return grid.height * grid.width / (m->vision.merge * m->vision.merge);
}

uint64_t image_window(const struct vision *v)
{
    uint64_t side = v->merge ? v->window / v->merge / v->patch : 0;
    return side ? side : U64_SATURATED / 2;
}

uint64_t image_windows(const struct model *m, struct image_grid grid)
{
    uint64_t side = image_window(&m->vision), merge = u64_most(m->vision.merge, 1);
    return u64_divide_up(grid.height / merge, side) * u64_divide_up(grid.width / merge, side);
}
