// What a node's ranks hold in host memory. Training keeps what is offloaded. Loading and saving are
// read from transformers 5.17, TRL 1.16, accelerate 1.15 and DeepSpeed 0.19.8, and not measured,
// but for one thing: a model that is loaded in its checkpoint's type is mapped from the file and
// takes nothing of its own (from_pretrained of a Qwen3 of 317 MiB in bf16: 1 MiB of anonymous
// memory; in fp32: 635).
#include "core/predict/host.h"

#include "core/base/num.h"
#include "core/strategies/strategies.h"

enum { FP32 = 4, BF16 = 2 };

// With offload of checkpoints, these wait in host memory in the residual's type: pinned, but under
// DeepSpeed (ArcticTraining b28638e, monkey_patches.py: arg.detach().to("cpu")).
static uint64_t bytes_per_checkpoint(const struct job *p)
{
    return job_is_wide(p) ? FP32 : BF16;
}

static uint64_t training(const struct job *p, uint64_t sent)
{
    const struct strategy_kind *strategy = strategy_kind_of(p->strategy);
    uint64_t state = strategy->host_bytes ? strategy->host_bytes(p) : 0, checkpoints = 0;
    if (p->activation_offload && !p->checkpointing)
        checkpoints = sent;
    else if (p->checkpoint_offload || p->activation_offload)
        checkpoints =
            sat_mul(job_tokens(p) * p->model.hidden, bytes_per_checkpoint(p) * p->model.layers);
    return sat_mul(state + checkpoints, p->hardware.gpus_per_node);
}

static bool is_trainers(const struct job *p)
{
    return p->recipe == RECIPE_TRL || p->recipe == RECIPE_TRANSFORMERS ||
           p->recipe == RECIPE_AXOLOTL || p->recipe == RECIPE_LLAMAFACTORY;
}

static bool is_fsdp(const struct job *p)
{
    return p->strategy == STRATEGY_FSDP1 || p->strategy == STRATEGY_FSDP2;
}

// Whether weights are turned into fp32 on their way, and stay in host memory until all are there.
// By a device map (TRL on one GPU) each goes to the card at once, and quantised ones do everywhere;
// files for DeepSpeed ask for bf16.
static bool widens(const struct job *p)
{
    if (p->packed || job_is_zero(p))
        return false;
    if (p->strategy == STRATEGY_SINGLE && p->recipe == RECIPE_TRL)
        return false;
    return job_is_wide(p) || (is_fsdp(p) && p->recipe == RECIPE_TRL);
}

// modeling_utils.py: under fsdp with cpu_ram_efficient_loading only a node's first rank reads. A
// reference model is there before either has gone to the card.
static uint64_t loading(const struct job *p)
{
    if (!is_trainers(p) || !widens(p))
        return 0;
    uint64_t models = job_reads_reference(p) && !p->lora_rank ? 2 : 1;
    uint64_t readers = is_fsdp(p) && p->loads_once ? 1 : p->hardware.gpus_per_node;
    return sat_mul(sat_mul(p->parameters.total, FP32), models * readers);
}

static uint64_t moments(const struct job *p)
{
    return p->lora_rank ? 0 : p->optimizer == OPTIMIZER_SGD ? 0 : 2;
}

// utils/fsdp_utils.py: the model's state dict, then the optimizer's; whole ones on the first rank,
// shards on each. Shards that are in host memory already are not copied.
static uint64_t saving_fsdp(const struct job *p)
{
    uint64_t width = job_is_mixed(p) || job_is_wide(p) ? FP32 : BF16;
    uint64_t whole = sat_mul(p->parameters.total, width * u64_most(1, moments(p)));
    uint64_t part = sat_mul(u64_divide_up(whole, job_shards(p)), p->hardware.gpus_per_node);
    return p->saving == SAVING_WHOLE ? whole : p->offload ? 0 : part;
}

// accelerator.py, get_state_dict: below stage 3 every rank copies its whole model, in stage 3 the
// first one gets it; engine.py, save_checkpoint: then torch.save takes one flat tensor of a rank's
// part after another, in stage 3 of a sub-group.
static uint64_t saving_zero(const struct job *p)
{
    const uint64_t sub_group = 1000000000; // elements, zero/config.py
    uint64_t model = sat_mul(p->parameters.total, BF16), ranks = p->hardware.gpus_per_node;
    uint64_t part = u64_divide_up(p->parameters.total, job_ranks(p));
    uint64_t flat = sat_mul(u64_least(part, sub_group), FP32 * ranks);
    if (p->strategy != STRATEGY_ZERO3)
        return sat_mul(model, ranks);
    return p->saving == SAVING_WHOLE ? u64_most(model, flat) : flat;
}

// safetensors brings all tensors of a file to the host before it writes; a file has up to 50 GB
// (modeling_utils.py, max_shard_size).
static uint64_t saving_whole(const struct job *p)
{
    const uint64_t file = UINT64_C(50000000000);
    uint64_t width = job_is_wide(p) ? FP32 : BF16;
    return p->lora_rank ? 0 : u64_least(sat_mul(p->parameters.total, width), file);
}

static uint64_t saving(const struct job *p)
{
    if (p->saving == SAVING_NEVER)
        return 0;
    if (job_is_zero(p))
        return saving_zero(p);
    return is_fsdp(p) ? saving_fsdp(p) : saving_whole(p);
}

// trainer_pt_utils.py, nested_numpify: in the end every rank brings the logits of all to the host,
// in fp32.
static uint64_t evaluating(const struct job *p)
{
    uint64_t kept = job_kept_logits(p), widened = p->precision == PRECISION_BF16 ? 2 : 1;
    return sat_mul(sat_mul(kept, widened), p->hardware.gpus_per_node);
}

struct host_bytes host_bytes_of(const struct job *job, uint64_t sent)
{
    struct host_bytes h = {.load = loading(job), .train = training(job, sent)};
    uint64_t written = saving(job);
    h.evaluate = sat_add(h.train, evaluating(job));
    h.save = written ? sat_add(h.train, written) : 0;
    return h;
}

uint64_t host_bytes_most(const struct host_bytes *h)
{
    return u64_most(u64_most(h->load, h->evaluate), u64_most(h->train, h->save));
}
