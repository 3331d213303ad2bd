// Launch files of a division of GPUs that `split` found: the teacher's server and its health check,
// device masks before Ray starts, the framework's own file, a Slurm job over several nodes.
#ifndef FATHOM_EMIT_DIVISION_H
#define FATHOM_EMIT_DIVISION_H

#include "core/emit/emit.h"
#include "core/search/split.h"

// Of the best division, for the request's framework. Fails with one sentence where the framework
// has no files for it.
bool division_files(struct emit_files *files, const struct split_request *r,
                    const struct split_result *x, const struct settings *s,
                    struct error *e) MUST_USE;

// ------------------------------------------------------------------ what a framework writes

struct division_writer {
    const char *framework;
    const struct refusal *refusals;
    ptrdiff_t refusal_count;
    void (*emit)(struct emit_files *files, const struct draft *j);
};
extern const struct division_writer division_slime, division_trinity, division_verl, division_trl;

// Lines that several share: the head of a launch script, and waiting for the teacher.
extern const struct line division_head_lines[], division_teacher_lines[], division_ray_lines[];
extern const ptrdiff_t division_head_count, division_teacher_count, division_ray_count;

#endif
