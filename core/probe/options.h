// What a user asks of `fathom probe`, read from settings: which cells, how to hunt in them, and how
// trials are run.
#ifndef FATHOM_PROBE_OPTIONS_H
#define FATHOM_PROBE_OPTIONS_H

#include "core/probe/engine.h"
#include "core/probe/hunt.h"
#include "core/settings/settings.h"

enum launcher { LAUNCHER_LOCAL, LAUNCHER_SLURM, LAUNCHER_RAY };
enum export_form { EXPORT_NONE, EXPORT_CSV, EXPORT_JSON, EXPORT_MARKDOWN };

struct setting_list {
    struct setting *items;
    ptrdiff_t count;
};

struct probe_options {
    const struct engine *engine;
    enum launcher launcher;
    enum export_form export;
    struct setting_list models, gpus, sp, cp; // a single empty model where none is given
    struct hunt hunt;                         // without prediction
    struct str log_folder, store;
    uint64_t timeout_ms, grace_ms;
    bool resume, dry_run, list, end_running;
};

bool probe_options_read(struct probe_options *o, struct arena *a, const struct settings *s,
                        struct error *e) MUST_USE;

// The settings of one cell: those of a prediction, and those that only engines read.
struct cell_choice {
    struct str model;
    ptrdiff_t number;        // of the model in the list
    struct str gpus, sp, cp; // "1" where cp is not meant
};

// Models, then GPUs, then sp, then cp, the last changing fastest.
ptrdiff_t probe_cell_count(const struct probe_options *o);
struct cell_choice probe_cell_choice(const struct probe_options *o, ptrdiff_t index);

struct cell_sizes {
    uint64_t gpus, sp, cp;
};
bool probe_cell_sizes(struct cell_sizes *sizes, const struct cell_choice *choice,
                      struct error *e) MUST_USE;

bool probe_cell_settings(struct settings *out, const struct settings *s,
                         const struct cell_choice *choice, struct error *e) MUST_USE;

// The settings that make a cell what it is, a line each, and the card that its trials really run on
// where that is known; where trials are the same, so is this.
struct str probe_cell_key(struct arena *a, const struct settings *cell, struct str card);

// What a model's logs and rows are called: the last part of its path or id, of "a/config.json" the
// folder's.
struct str probe_model_name(struct str model);

// Whether the setting changes what a prediction says.
bool probe_is_predicted(const struct setting_def *def);

// Of the settings of a cell those that predictions take.
bool probe_job_settings(struct settings *out, const struct settings *cell,
                        struct error *e) MUST_USE;

#endif
