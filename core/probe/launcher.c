// Slurm and Ray: the command becomes a script, and a script of share/ looks after the job.
#include "core/probe/launcher.h"

#include "core/base/buf.h"

static const char *const keepers_of_jobs[] = {
    [LAUNCHER_SLURM] = "slurm_trial.sh",
    [LAUNCHER_RAY] = "ray_trial.sh",
};

static void put_script(struct buf *b, const struct launch *l)
{
    buf_put_z(b, "#!/bin/sh\nexec env ");
    launch_print(b, l);
    buf_char(b, '\n');
}

bool launcher_wrap(struct launch *l, struct arena *a, enum launcher launcher,
                   const struct trial_request *r, struct error *e)
{
    if (launcher == LAUNCHER_LOCAL)
        return true;
    if (r->socket.n)
        return FAIL(e, BAD_INPUT, STR("--launcher"),
                    "the torch engine's server runs here, so its trials cannot be a scheduler's");
    struct buf script = buf_in(a);
    put_script(&script, l);
    struct str path = str_format(a, "%.*s.sh", STR_ARGS(r->log));
    struct launch wrapped = {.file_count = l->file_count};
    for (int i = 0; i < l->file_count; i++)
        wrapped.files[i] = l->files[i];
    ASSERT(wrapped.file_count < LAUNCH_MAX_FILES);
    wrapped.files[wrapped.file_count++] = (struct launch_file){path, buf_str(&script)};
    launch_argument(&wrapped, a, STR("sh"));
    launch_argument(&wrapped, a,
                    str_format(a, "%.*s/%s", STR_ARGS(r->shipped), keepers_of_jobs[launcher]));
    launch_argument(&wrapped, a, path);
    launch_argument(&wrapped, a, str_format(a, "%.*s.job", STR_ARGS(r->log)));
    uint64_t gpus = l->gpus ? l->gpus : r->gpus;
    launch_argument(&wrapped, a, str_format(a, "%llu", (unsigned long long)gpus));
    *l = wrapped;
    return true;
}
