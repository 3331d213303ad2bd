// See division.h: the facts of a division, and the files that several frameworks share.
#include "core/emit/division.h"

#include "core/base/num.h"

// ------------------------------------------------------------------ shared files

static const struct line environment_file[] = {
    {.text = "# What fathom split found: @layout@, @iteration@ s an iteration (computed).\n"
             "# Every file here reads it. GPUs are numbered over all nodes, the teacher's first."},
    {.text = "# teacher: @teacher_says@"},
    {.text = "# rollout: @rollout_says@"},
    {.text = "# training: @train_says@"},
    {.text = "NODES=@nodes@\n"
             "GPUS_PER_NODE=@per_node@\n"
             "NODE_RANK=${NODE_RANK:-0}"},
    {IS_TEACHER_APART, 0,
     "TEACHER_TP=@teacher_tp@\n"
     "TEACHER_PORT=${TEACHER_PORT:-13141}"},
    {IS_TEACHER_APART | BY_SLIME, 0,
     "# The variables of the published guide; the student's GPUs train and generate."},
    {IS_TEACHER_APART | BY_SLIME, 0,
     "export SLIME_SCRIPT_NUM_GPUS=${SLIME_SCRIPT_NUM_GPUS:-@gpus@}\n"
     "export SLIME_SCRIPT_NUM_GPUS_TEACHER=${SLIME_SCRIPT_NUM_GPUS_TEACHER:-@teacher_gpus@}\n"
     "export SLIME_SCRIPT_NUM_GPUS_STUDENT=${SLIME_SCRIPT_NUM_GPUS_STUDENT:-@student_gpus@}\n"
     "export SLIME_SCRIPT_TEACHER_MODEL=${SLIME_SCRIPT_TEACHER_MODEL:-@teacher@}\n"
     "export SLIME_SCRIPT_STUDENT_MODEL=${SLIME_SCRIPT_STUDENT_MODEL:-@weights@}\n"
     "TEACHER_GPUS=$SLIME_SCRIPT_NUM_GPUS_TEACHER\n"
     "if ((TEACHER_GPUS + SLIME_SCRIPT_NUM_GPUS_STUDENT != SLIME_SCRIPT_NUM_GPUS)); then\n"
     "    echo \"teacher and student do not make up $SLIME_SCRIPT_NUM_GPUS GPUs\" >&2\n"
     "    exit 2\n"
     "fi"},
    {IS_TEACHER_APART, BY_SLIME, "TEACHER_GPUS=@teacher_gpus@"},
    {0, IS_TEACHER_APART, "TEACHER_GPUS=0 # Ray has them all; the framework starts the teacher"},
    {IS_TEACHER_APART, 0,
     "if ((TEACHER_GPUS % TEACHER_TP)); then\n"
     "    echo \"$TEACHER_GPUS GPUs are no whole engines of $TEACHER_TP\" >&2\n"
     "    exit 2\n"
     "fi"},
    {.text = "teacher_devices=\n"
             "student_devices=\n"
             "for ((gpu = 0; gpu < GPUS_PER_NODE; gpu++)); do\n"
             "    if ((NODE_RANK * GPUS_PER_NODE + gpu < TEACHER_GPUS)); then\n"
             "        teacher_devices+=${teacher_devices:+,}$gpu\n"
             "    else\n"
             "        student_devices+=${student_devices:+,}$gpu\n"
             "    fi\n"
             "done\n"
             "count_of() { tr ',' '\\n' <<<\"$1\" | grep -c .; }"},
};

static const struct line teacher_file[] = {
    {.text = "#!/usr/bin/env bash\n"
             "# The teacher on this node's share of its GPUs: it reads sequences and scores their\n"
             "# tokens, and generates nothing. @teacher_says@"},
    {.text = "set -euo pipefail\n"
             "here=$(cd \"$(dirname \"$0\")\" && pwd)\n"
             "source \"$here/split.env\"\n"
             "[ -n \"$teacher_devices\" ] || exit 0\n"
             "export CUDA_VISIBLE_DEVICES=$teacher_devices\n"
             "replicas=$(($(count_of \"$teacher_devices\") / TEACHER_TP))"},
    {BY_SLIME, 0,
     "exec python3 -m sglang.launch_server \\\n"
     "    --model-path \"$SLIME_SCRIPT_TEACHER_MODEL\" \\\n"
     "    --host 0.0.0.0 \\\n"
     "    --port \"$TEACHER_PORT\" \\\n"
     "    --tp-size \"$TEACHER_TP\" \\\n"
     "    --dp-size \"$replicas\" \\\n"
     "    --context-length @teacher_context@ \\\n"
     "    --chunked-prefill-size @teacher_chunk@ \\\n"
     "    --mem-fraction-static @teacher_memory@"},
    {0, BY_SLIME,
     "exec trl vllm-serve \\\n"
     "    --model @teacher@ \\\n"
     "    --host 0.0.0.0 \\\n"
     "    --port \"$TEACHER_PORT\" \\\n"
     "    --tensor_parallel_size \"$TEACHER_TP\" \\\n"
     "    --data_parallel_size \"$replicas\" \\\n"
     "    --max_model_len @teacher_context@ \\\n"
     "    --gpu_memory_utilization @teacher_memory@"},
};

const struct line division_head_lines[] = {
    {.text = "set -euo pipefail\n"
             "here=$(cd \"$(dirname \"$0\")\" && pwd)\n"
             "source \"$here/split.env\""},
};
const ptrdiff_t division_head_count = COUNT_OF(division_head_lines);

const struct line division_teacher_lines[] = {
    {.text = "# The teacher: started here on one node, by job.sbatch on several; either way it "
             "answers\n"
             "# before anything else starts.\n"
             "teachers=()\n"
             "if [ -z \"${TEACHER_URLS:-}\" ]; then\n"
             "    bash \"$here/teacher.sh\" >\"$here/teacher.log\" 2>&1 &\n"
             "    teachers+=($!)\n"
             "    trap 'kill \"${teachers[@]}\" 2>/dev/null || true' EXIT\n"
             "    TEACHER_URLS=http://127.0.0.1:$TEACHER_PORT\n"
             "fi\n"
             "for url in $TEACHER_URLS; do\n"
             "    until curl -sf \"$url/@health@\" >/dev/null; do\n"
             "        if ((${#teachers[@]})) && ! kill -0 \"${teachers[0]}\" 2>/dev/null; then\n"
             "            tail -n 20 \"$here/teacher.log\" >&2\n"
             "            exit 1\n"
             "        fi\n"
             "        sleep 5\n"
             "    done\n"
             "done\n"
             "TEACHER_URL=${TEACHER_URLS%% *}"},
};
const ptrdiff_t division_teacher_count = COUNT_OF(division_teacher_lines);

const struct line division_ray_lines[] = {
    {.text = "# Ray gets the student's GPUs and no others: the mask stands before it starts. On "
             "several\n"
             "# nodes job.sbatch has started it.\n"
             "if [ -z \"${RAY_ADDRESS:-}\" ]; then\n"
             "    export CUDA_VISIBLE_DEVICES=$student_devices\n"
             "    ray start --head --node-ip-address 127.0.0.1 --num-gpus "
             "\"$(count_of \"$student_devices\")\" \\\n"
             "        --disable-usage-stats --dashboard-host 127.0.0.1 --dashboard-port 8265\n"
             "fi"},
};
const ptrdiff_t division_ray_count = COUNT_OF(division_ray_lines);

static const struct line slurm_file[] = {
    {.text =
         "#!/usr/bin/env bash\n"
         "#SBATCH --job-name=fathom-split\n"
         "#SBATCH --nodes=@nodes@\n"
         "#SBATCH --ntasks-per-node=1\n"
         "#SBATCH --gpus-per-node=@per_node@\n"
         "#SBATCH --exclusive\n"
         "#SBATCH --mem=0\n"
         "#SBATCH --time=24:00:00\n"
         "#SBATCH --output=%x-%j.out\n"
         "# @layout@ over @nodes@ nodes. Submit it from this folder, which every node must see."},
    {.text = "set -euo pipefail\n"
             "cd \"$SLURM_SUBMIT_DIR\"\n"
             "source ./split.env\n"
             "mapfile -t hosts < <(scontrol show hostnames \"$SLURM_JOB_NODELIST\")\n"
             "on() { srun --overlap --nodes=1 --ntasks=1 -w \"$1\" \"${@:2}\"; }"},
    {IS_TEACHER_APART, 0,
     "TEACHER_URLS=\n"
     "for ((node = 0; node * GPUS_PER_NODE < TEACHER_GPUS; node++)); do\n"
     "    on \"${hosts[node]}\" env NODE_RANK=\"$node\" bash teacher.sh >\"teacher-$node.log\" "
     "2>&1 &\n"
     "    TEACHER_URLS+=${TEACHER_URLS:+ }http://${hosts[node]}:$TEACHER_PORT\n"
     "done\n"
     "export TEACHER_URLS"},
    {.text = "# Ray on every node that has other GPUs than the teacher's.\n"
             "first=$((TEACHER_GPUS / GPUS_PER_NODE))\n"
             "head=${hosts[first]}\n"
             "port=$((30000 + SLURM_JOB_ID % 20000))\n"
             "for ((node = first; node < NODES; node++)); do\n"
             "    on \"${hosts[node]}\" env NODE_RANK=\"$node\" bash ray.sh \"$head\" \"$port\" &\n"
             "done\n"
             "alive='import ray, sys; ray.init(address=sys.argv[1], logging_level=\"ERROR\")\n"
             "sys.exit(sum(node[\"Alive\"] for node in ray.nodes()) < int(sys.argv[2]))'\n"
             "until on \"$head\" python3 -c \"$alive\" \"$head:$port\" \"$((NODES - first))\"; do\n"
             "    sleep 5\n"
             "done\n"
             "on \"$head\" env NODE_RANK=\"$first\" RAY_ADDRESS=\"$head:$port\" \\\n"
             "    RAY_DASHBOARD=\"http://$head:8265\" bash launch.sh"},
};

static const struct line ray_file[] = {
    {.text =
         "#!/usr/bin/env bash\n"
         "# Ray on this node, with a mask over the teacher's GPUs: ray.sh HEAD PORT\n"
         "set -euo pipefail\n"
         "here=$(cd \"$(dirname \"$0\")\" && pwd)\n"
         "source \"$here/split.env\"\n"
         "export CUDA_VISIBLE_DEVICES=$student_devices\n"
         "gpus=$(count_of \"$student_devices\")\n"
         "if ((NODE_RANK == TEACHER_GPUS / GPUS_PER_NODE)); then\n"
         "    exec ray start --head --node-ip-address \"$1\" --port \"$2\" --num-gpus \"$gpus\" "
         "\\\n"
         "        --dashboard-host 0.0.0.0 --disable-usage-stats --block\n"
         "fi\n"
         "exec ray start --address \"$1:$2\" --num-gpus \"$gpus\" --disable-usage-stats --block"},
};

// ------------------------------------------------------------------ facts

static struct str fraction_text(struct arena *a, uint64_t thousandths)
{
    return str_format(a, "0.%02llu", (unsigned long long)(thousandths / 10));
}

// Inside a Python string of double quotes.
static struct str python_text(struct arena *a, struct str text)
{
    struct buf out = buf_in(a);
    for (ptrdiff_t i = 0; i < text.n; i++) {
        if (text.p[i] == '"' || text.p[i] == '\\')
            buf_char(&out, '\\');
        if ((unsigned char)text.p[i] >= 0x20)
            buf_char(&out, text.p[i]);
    }
    return buf_str(&out);
}

static struct str server_says(struct arena *a, const struct split_part *p)
{
    struct buf says = buf_in(a);
    buf_count(&says, p->engines, "engine");
    buf_put_z(&says, " of ");
    buf_count(&says, p->tp, "GPU");
    buf_put_z(&says, ", ");
    put_gib(&says, p->reserved);
    buf_put_z(&says, " of each card, room for ");
    buf_count(&says, p->sequences, "sequence");
    buf_printf(&says, " each, %.1f s", p->seconds);
    return buf_str(&says);
}

// Megatron's tensor parallelism where its step is not modelled: 6 bytes a parameter on each of the
// ranks that share it, 12 over all, and 12 a logit, under four fifths of the card.
static uint64_t thumb_tp(const struct split_request *r, const struct split_part *train)
{
    uint64_t room = r->hardware.card.memory.value / 5 * 4, parameters = r->rollout.parameters.total;
    uint64_t logits = (r->prompt + r->response) * r->rollout.model->vocab * 12;
    for (uint64_t tp = 1; tp < train->gpus; tp *= 2) {
        bool divides = train->gpus % tp == 0 && serve_divides(r->rollout.model, tp);
        if (divides && 6 * parameters / tp + 12 * parameters / train->gpus + logits / tp <= room)
            return tp;
    }
    return train->gpus;
}

static void take_counts(struct draft *j, const struct split_request *r, const struct split *d)
{
    const struct split_part *teacher = &d->parts[ROLE_TEACHER], *train = &d->parts[ROLE_TRAIN];
    const struct split_part *rollout = &d->parts[ROLE_ROLLOUT];
    uint64_t node = r->hardware.gpus_per_node, nodes = u64_divide_up(train->gpus, node);
    uint64_t teacher_nodes = u64_divide_up(teacher->gpus, node);
    uint64_t tp = train->borrowed_all ? thumb_tp(r, train) : train->tp;
    const struct {
        const char *name;
        uint64_t value;
    } counts[] = {
        {"gpus", r->gpus},
        {"nodes", r->gpus / node},
        {"per_node", node},
        {"teacher_gpus", teacher->gpus},
        {"student_gpus", r->gpus - teacher->gpus},
        {"teacher_tp", teacher->tp},
        {"teacher_engines", teacher->engines},
        {"teacher_nodes", teacher_nodes},
        {"teacher_per_node", teacher->gpus / teacher_nodes},
        {"teacher_chunk", teacher->chunk},
        {"teacher_context", r->prompt + r->response + 1},
        {"train_gpus", train->gpus},
        {"train_nodes", nodes},
        {"train_per_node", train->gpus / nodes},
        {"train_tp", tp},
        {"train_pp", train->borrowed_all ? 1 : train->pp},
        {"student_per_node", u64_least(r->gpus - teacher->gpus, node)},
        {"rollout_gpus", rollout->gpus},
        {"rollout_tp", rollout->tp},
        {"rollout_engines", rollout->engines},
        {"prompts", r->prompts},
        {"samples", r->samples},
        {"sequences", r->global_batch},
        {"prompt", r->prompt},
        {"response", r->response},
        {"context", r->prompt + r->response},
        {"micro", train->micro},
        {"mini_prompts", u64_most(r->global_batch / r->samples, 1)},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(counts); i++)
        draft_count(j, counts[i].name, counts[i].value);
    j->traits |= tp > 1 ? IS_TP : 0;
}

static void take_words(struct draft *j, const struct split_request *r, const struct split *d)
{
    const struct split_part *train = &d->parts[ROLE_TRAIN];
    struct arena *a = j->arena;
    const struct setting *data = settings_find_z(j->settings, "dataset");
    struct buf says = buf_in(a);
    put_gib(&says, train->reserved);
    buf_printf(&says, " of each card, %.1f s%s", train->seconds,
               train->borrowed_all ? ", as the plain FSDP2 step takes them" : "");
    draft_fact(j, "layout", str_from(split_layout_name(d->layout)));
    draft_fact(j, "iteration", str_format(a, "%.1f", d->iteration));
    draft_fact(j, "teacher_says", server_says(a, &d->parts[ROLE_TEACHER]));
    draft_fact(j, "rollout_says", server_says(a, &d->parts[ROLE_ROLLOUT]));
    draft_fact(j, "train_says", buf_str(&says));
    draft_fact(j, "teacher_memory", fraction_text(a, d->parts[ROLE_TEACHER].thousandths));
    draft_fact(j, "rollout_memory", fraction_text(a, d->parts[ROLE_ROLLOUT].thousandths));
    draft_fact(j, "teacher", r->teacher.weights);
    draft_fact(j, "weights", r->rollout.weights);
    draft_fact(j, "dataset", data ? data->value : STR("data.jsonl"));
    draft_fact(j, "dataset_python", python_text(a, data ? data->value : STR("data.jsonl")));
    draft_fact(j, "weights_python", python_text(a, r->rollout.weights));
    draft_fact(j, "health",
               str_is(str_from(r->framework->name), "slime") ? STR("health_generate")
                                                             : STR("health/"));
}

static void take_traits(struct draft *j, const struct split_request *r, const struct split *d)
{
    feature_set vision = FEATURE_VISION_QWEN3 | FEATURE_VISION_SIGLIP | FEATURE_VISION_WINDOWS;
    bool inside = r->framework->inside;
    j->traits |= (r->rollout.model->features & vision) ? IS_VISION : 0;
    j->traits |= r->gpus > r->hardware.gpus_per_node ? IS_NODES : 0;
    j->traits |= d->layout == LAYOUT_APART ? IS_APART : 0;
    j->traits |= d->offloaded ? IS_OFFLOAD_ALL : 0;
    j->traits |= inside ? 0 : IS_TEACHER_APART;
    j->traits |= str_is(str_from(r->framework->name), "slime") ? BY_SLIME : 0;
}

// ------------------------------------------------------------------ writing

static const struct division_writer *writer_of(const char *framework)
{
    static const struct division_writer *const all[] = {&division_slime, &division_trinity,
                                                        &division_verl, &division_trl};
    for (ptrdiff_t i = 0; i < COUNT_OF(all); i++)
        if (str_is(str_from(framework), all[i]->framework))
            return all[i];
    return NULL;
}

static bool is_refused(const struct draft *j, const struct division_writer *w, struct error *e)
{
    for (ptrdiff_t i = 0; i < w->refusal_count; i++) {
        const struct refusal *row = &w->refusals[i];
        if (!draft_is(j, row->when, row->unless))
            continue;
        FAIL(e, UNSUPPORTED, str_format(j->arena, "--%s", row->setting), "%s", row->why);
        return true;
    }
    return false;
}

static bool take_script(struct draft *j, const struct split_request *r, struct error *e)
{
    struct str name = r->rollout.model->name;
    bool vision = draft_is(j, IS_VISION, 0), small = vision && str_starts(name, STR("Qwen3-VL-2B"));
    struct str text = small ? STR("Qwen3-1.7B") : name;
    if (vision && !small && str_starts(name, STR("Qwen3-VL-")))
        text = str_join(j->arena, STR("Qwen3-"), str_slice(name, STR("Qwen3-VL-").n, name.n));
    const char *script = slime_model_script(text);
    if (!script)
        return FAIL(e, UNSUPPORTED, STR("--student"),
                    "slime ships no Megatron arguments for this model; Qwen3-8B is one it has");
    draft_fact(j, "model_script", str_from(script));
    return true;
}

bool division_files(struct emit_files *files, const struct split_request *r,
                    const struct split_result *x, const struct settings *s, struct error *e)
{
    const struct split *d = &x->choices[SPLIT_BEST];
    struct draft *j = NEW(r->arena, struct draft, 1);
    if (!r->framework)
        return FAIL(e, BAD_INPUT, STR("--emit"),
                    "files are written for a framework: --framework slime, trinity, verl or trl");
    if (d->parts[ROLE_TEACHER].pp > 1)
        return FAIL(e, UNSUPPORTED, STR("--emit"),
                    "files for a teacher whose engine lies in several nodes are not written");
    const struct division_writer *w = writer_of(r->framework->name);
    *j = (struct draft){.arena = r->arena, .settings = s};
    *files = (struct emit_files){.arena = r->arena};
    take_traits(j, r, d);
    take_counts(j, r, d);
    take_words(j, r, d);
    if (is_refused(j, w, e) || (draft_is(j, BY_SLIME, 0) && !take_script(j, r, e)))
        return false;
    emit_script(files, j, "split.env", environment_file, COUNT_OF(environment_file));
    if (draft_is(j, IS_TEACHER_APART, 0))
        emit_script(files, j, "teacher.sh", teacher_file, COUNT_OF(teacher_file));
    w->emit(files, j);
    if (draft_is(j, IS_NODES, 0)) {
        emit_script(files, j, "ray.sh", ray_file, COUNT_OF(ray_file));
        emit_script(files, j, "job.sbatch", slurm_file, COUNT_OF(slurm_file));
    }
    return true;
}
