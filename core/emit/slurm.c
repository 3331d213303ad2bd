// Slurm: one job around another target's launch script. One launcher a node, what differs between
// nodes is read inside srun, and a job that runs out of time is queued again.
#include "core/emit/emit.h"

static const struct line head_lines[] = {
    {.text = "#!/usr/bin/env bash\n"
             "#SBATCH --job-name=fathom\n"
             "#SBATCH --nodes=@job_nodes@\n"
             "#SBATCH --ntasks-per-node=1\n"
             "#SBATCH --gpus-per-node=@job_gpus@\n"
             "#SBATCH --cpus-per-task=@job_cpus@\n"
             "#SBATCH --exclusive\n"
             "#SBATCH --mem=0\n"
             "#SBATCH --time=24:00:00\n"
             "#SBATCH --output=%x-%j.out\n"
             "#SBATCH --open-mode=append\n"
             "#SBATCH --requeue\n"
             "#SBATCH --signal=B:USR1@120\n"
             "# @name@, @context@ tokens a sequence: @around@ on @job_nodes@ nodes.\n"
             "# @predicted@\n"
             "# Submit it from this folder, which every node must see: sbatch job.sbatch"},
    {.text = "# --mem=0 is all memory of a node; without it a job gets the cluster's default.\n"
             "set -euo pipefail\n"
             "cd \"$SLURM_SUBMIT_DIR\""},
    {.text = "# 120 seconds before the end the job is queued again;\n# @resumes@."},
    {.text = "trap 'echo \"out of time: queued again\"; scontrol requeue \"$SLURM_JOB_ID\"' USR1\n"
             "MASTER_ADDR=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1)\n"
             "export MASTER_ADDR\n"
             "# A port of this job's own: 29500 may be another's.\n"
             "export MASTER_PORT=$((10000 + SLURM_JOB_ID % 20000))\n"
             "export OMP_NUM_THREADS=$((SLURM_CPUS_PER_TASK / @job_gpus@))\n"
             "# srun does not take this from sbatch by itself.\n"
             "export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK"},
    {IS_OVER_NODES | IS_EXPANDABLE, 0,
     "# Exported before starting Ray: its workers see nothing that is exported later. srun hands\n"
     "# it to every node."},
};

static const struct line run_lines[] = {
    {0, IS_OVER_NODES,
     "srun --kill-on-bad-exit=1 --wait=60 \\\n"
     "    bash -c 'NODE_RANK=$SLURM_NODEID exec bash launch.sh' &"},
    {IS_OVER_NODES, 0,
     "port=$((30000 + SLURM_JOB_ID % 20000))\n"
     "export RAY_ADDRESS=$MASTER_ADDR:$port RAY_DASHBOARD=http://$MASTER_ADDR:8265\n"
     "srun --nodes=1 --ntasks=1 -w \"$MASTER_ADDR\" env -u RAY_ADDRESS ray start --head \\\n"
     "    --node-ip-address=\"$MASTER_ADDR\" --port=\"$port\" --num-gpus=@job_gpus@ "
     "--dashboard-host=0.0.0.0 \\\n"
     "    --disable-usage-stats --block &\n"
     "until srun --overlap --nodes=1 --ntasks=1 -w \"$MASTER_ADDR\" ray status >/dev/null 2>&1; "
     "do\n"
     "    sleep 5\n"
     "done"},
    {IS_OVER_NODES, 0,
     "others=$((SLURM_NNODES - 1))\n"
     "srun --nodes=\"$others\" --ntasks=\"$others\" -x \"$MASTER_ADDR\" \\\n"
     "    ray start --address=\"$RAY_ADDRESS\" --num-gpus=@job_gpus@ --disable-usage-stats --block "
     "&\n"
     "alive='import ray, sys; ray.init(logging_level=\"ERROR\")\n"
     "sys.exit(sum(node[\"Alive\"] for node in ray.nodes()) < int(sys.argv[1]))'\n"
     "until srun --overlap --nodes=1 --ntasks=1 -w \"$MASTER_ADDR\" \\\n"
     "    python3 -c \"$alive\" \"$SLURM_NNODES\"; do\n"
     "    sleep 5\n"
     "done"},
    {IS_OVER_NODES, 0, "srun --overlap --nodes=1 --ntasks=1 -w \"$MASTER_ADDR\" bash launch.sh &"},
    {.text = "# The trap runs only while the shell waits; after it, the wait goes on.\n"
             "job=$!\n"
             "status=0\n"
             "wait \"$job\" || status=$?\n"
             "if kill -0 \"$job\" 2>/dev/null; then\n"
             "    status=0\n"
             "    wait \"$job\" || status=$?\n"
             "fi\n"
             "exit \"$status\""},
};

static const struct refusal refusals[] = {
    {IS_OPD | IS_TEACHER_APART, 0, "around",
     "the teacher does not fit beside the trainer, and one Slurm job here has one kind of node"},
};

static void emit(struct emit_files *files, const struct draft *j)
{
    struct buf job = buf_in(j->arena);
    lines_into(&job, j, head_lines, COUNT_OF(head_lines));
    if (draft_is(j, IS_OVER_NODES, 0))
        lines_into(&job, j, allocator_lines, allocator_line_count);
    lines_into(&job, j, run_lines, COUNT_OF(run_lines));
    emit_add(files, "job.sbatch", buf_str(&job));
}

const struct writer writer_slurm = {
    .refusals = refusals,
    .refusal_count = COUNT_OF(refusals),
    .emit = emit,
};
