// Files that a framework runs as they are. A target is tables: what it refuses, the keys of its
// documents, the lines of its scripts, each row with the traits of a job under which it holds.
#ifndef FATHOM_EMIT_EMIT_H
#define FATHOM_EMIT_EMIT_H

#include "core/emit/document.h"
#include "core/emit/draft.h"

struct emit_file {
    struct str name, content;
};

struct emit_files {
    struct arena *arena;
    struct emit_file *items;
    ptrdiff_t count, capacity;
};

// Fails with one sentence where files cannot be written for want of something.
bool emit_check(const struct draft *j, struct error *e) MUST_USE;

// Everything that a checked job's --for asks for.
bool emit_files(struct emit_files *files, struct draft *j, struct error *e) MUST_USE;

// ------------------------------------------------------------------ what targets are made of

// Of what only files have.
struct refusal {
    trait_set when, unless;
    const char *setting; // named as the place
    const char *why;     // a sentence, may hold facts
};

struct row {
    const char *path; // "fsdp_config.fsdp_version"; "" is the document itself
    enum row_kind {
        ROW_LITERAL, // a number, true, false, null
        ROW_TEXT,
        ROW_TRAIT, // true or false, as the job has `trait`
        ROW_NOTE,  // only a note
    } kind;
    const char *value;
    trait_set when, unless;
    const char *note;
    trait_set trait;
};

struct line {
    trait_set when, unless;
    const char *text; // one or more lines of a script
};

// Of the files of one target; what the target itself cannot run are rules of core/job.
struct writer {
    bool (*prepare)(struct draft *j, struct error *e); // facts of its own, NULL for none
    const struct refusal *refusals;
    ptrdiff_t refusal_count;
    void (*emit)(struct emit_files *files, const struct draft *j);
};

extern const struct writer writer_accelerate, writer_deepspeed, writer_trl, writer_trinity,
    writer_verl, writer_slime, writer_slurm, writer_axolotl, writer_llamafactory;

// Of slime's scripts/models; NULL: it has none.
const char *slime_model_script(struct str name);

void emit_add(struct emit_files *files, const char *name, struct str content);
void emit_yaml(struct emit_files *files, const struct draft *j, const char *name,
               const struct row *rows, ptrdiff_t count);
void emit_json(struct emit_files *files, const struct draft *j, const char *name,
               const struct row *rows, ptrdiff_t count);
void emit_script(struct emit_files *files, const struct draft *j, const char *name,
                 const struct line *lines, ptrdiff_t count);

// Rows and lines that hold, added to what is there.
void rows_into(struct node *root, const struct draft *j, const struct row *rows, ptrdiff_t count);
void lines_into(struct buf *out, const struct draft *j, const struct line *lines, ptrdiff_t count);

// Shared by several targets.
void emit_accelerate_yaml(struct emit_files *files, const struct draft *j);
void emit_deepspeed_json(struct emit_files *files, const struct draft *j);
void emit_training_script(struct emit_files *files);
void emit_yarn_script(struct emit_files *files, const struct draft *j);
#define RAY_CLUSTER_LINE                                                                          \
    "# A Ray cluster of all nodes must be running: 'ray start --head' on the first, 'ray start\n" \
    "# --address' on the others; fathom emit --for slurm writes a job that does it."
#define RAY_EXPORT_LINE                                                                     \
    "# Ray's workers see what was exported before 'ray start' on their node, and nothing\n" \
    "# that is exported later: export the allocator's setting there before starting Ray."
extern const struct line allocator_lines[]; // its setting alone
extern const ptrdiff_t allocator_line_count;
extern const struct line environment_lines[]; // the allocator's setting, the model with YaRN
extern const ptrdiff_t environment_line_count;
extern const struct line node_lines[]; // which node this is, where there are several
extern const ptrdiff_t node_line_count;
void emit_accelerate_training(struct emit_files *files, const struct draft *j); // with train.py

#endif
