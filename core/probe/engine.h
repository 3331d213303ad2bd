// What trains. An engine is a row: how one trial's command, environment and files are made. Reading
// what it says is the same for all: the doctor for failures, lines of JSON for peaks.
#ifndef FATHOM_PROBE_ENGINE_H
#define FATHOM_PROBE_ENGINE_H

#include "core/settings/settings.h"

// One trial, as far as a command depends on it.
struct trial_request {
    const struct settings *cell; // the settings of its cell
    struct str model;            // as the user gave it, empty for none
    struct str model_name;       // the last part of that
    struct str config;           // the model's configuration as JSON, empty where unknown
    struct str machine;          // "8xH100-80G", empty where the card is not known
    uint64_t context, gpus, sp, cp, max_position;
    uint64_t limit_bytes;     // what torch may reserve; 0: all there is
    uint64_t workspace_bytes; // what cuBLAS may use; 0: what the card's own default is
    int try;
    struct str log;         // other files of the trial stand beside it
    struct str program;     // Fathom itself, which replays what fake tensors did
    struct str shipped;     // the folder of the files that come with Fathom
    struct str python_path; // on which Python finds the player of ranks before all else
    struct str socket;      // of the torch worker's server
    struct str checkpoints; // a folder for this trial alone
};

struct launch_file {
    struct str path, content;
};

enum { LAUNCH_MAX_FILES = 12, LAUNCH_MAX_ARGUMENTS = 32 };

struct launch {
    const char *arguments[LAUNCH_MAX_ARGUMENTS];   // ends with NULL
    const char *environment[LAUNCH_MAX_ARGUMENTS]; // likewise
    int argument_count, environment_count;
    struct launch_file files[LAUNCH_MAX_FILES];
    int file_count;
    uint64_t gpus; // that a scheduler has to give; 0: those of the trial
};

struct engine {
    const char *name;
    bool needs_model;
    const char *recipe;  // the only one it trains; NULL: the one that is asked for
    bool serves;         // the torch worker's fork server runs beside it
    bool limits;         // keeps torch to a limit
    bool saves;          // checkpoints, which nobody needs after the trial
    bool hides_failures; // its exit status is 0 whatever happened
    const char *failure; // what it says then; NULL: nothing known
    bool whole_card;     // trains with all of the card that is there
    bool is_played;      // with one-gpu its ranks are played by share/one_gpu
    bool (*build)(struct launch *l, struct arena *a, const struct trial_request *r,
                  struct error *e);
};

extern const struct engine engines[];
const struct engine *engine_find(struct str name); // NULL: there is none

// The command as a shell would take it, for people to read and repeat.
void launch_print(struct buf *b, const struct launch *l);

// Adding to a launch, for engines.
void launch_argument(struct launch *l, struct arena *a, struct str text);
struct str path_as_argument(struct arena *a, struct str path); // nothing that looks like an option
void launch_variable(struct launch *l, struct arena *a, const char *name, struct str value);

// Whether one GPU is to play the ranks of a program that knows nothing of it.
bool trial_is_played(const struct engine *engine, const struct settings *cell);
// The environment in which any Python program is kept to the limit, tells torch's peaks, and is
// rank 0 of the trial's where one GPU plays them; the former does so in the latter case only.
void launch_played(struct launch *l, struct arena *a, const struct trial_request *r);

// With --fake: on tensors without memory (share/one_gpu/fathom_fake.py).
bool launch_fake(struct launch *l, struct arena *a, const struct trial_request *r, struct error *e);
void launch_watched(struct launch *l, struct arena *a, const struct trial_request *r);

// A setting that an engine takes, and which of its values, separated by '|'; one that ends with a
// colon stands for all that begin so. NULL: any.
struct engine_setting {
    const char *name, *values;
};

// Refuses values that an engine does not take. The rows end with an empty one; settings that have
// none are not looked at.
bool engine_check_values(const char *engine, const struct engine_setting *rows,
                         const struct settings *cell, struct error *e) MUST_USE;
bool engine_value_is_in(struct str value, const char *values);
struct str engine_value_text(const struct setting *item); // switches as on and off

// How far beyond the positions of the model; 0 where it is not.
double trial_yarn_factor(const struct trial_request *r);
// Of cuBLAS, as CUBLAS_WORKSPACE_CONFIG takes it; empty where the card's own default holds.
struct str trial_workspace_text(struct arena *a, const struct trial_request *r);

struct str trial_yarn_text(struct arena *a, const struct trial_request *r); // "1.25"; else "1"

// Each engine's build.
bool torch_build(struct launch *l, struct arena *a, const struct trial_request *r,
                 struct error *e) MUST_USE;
bool command_build(struct launch *l, struct arena *a, const struct trial_request *r,
                   struct error *e) MUST_USE;
bool accelerate_build(struct launch *l, struct arena *a, const struct trial_request *r,
                      struct error *e) MUST_USE;
bool deepspeed_build(struct launch *l, struct arena *a, const struct trial_request *r,
                     struct error *e) MUST_USE;
bool transformers_build(struct launch *l, struct arena *a, const struct trial_request *r,
                        struct error *e) MUST_USE;
bool trl_build(struct launch *l, struct arena *a, const struct trial_request *r,
               struct error *e) MUST_USE;
bool trinity_build(struct launch *l, struct arena *a, const struct trial_request *r,
                   struct error *e) MUST_USE;

// The server that the torch engine's trials are forked from.
void torch_server(struct launch *l, struct arena *a, const struct trial_request *r);

// The model's configuration as a JSON object: what was flattened from its config.json, or the
// catalogue's row. Empty where there is no model.
struct str model_config_json(struct arena *a, const struct settings *s);

#endif
