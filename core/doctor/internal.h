// What the files of this stage share: the kinds by name, the symptoms that lead to them, the scan
// for their anchors, and the readers of one message.
#ifndef FATHOM_DOCTOR_INTERNAL_H
#define FATHOM_DOCTOR_INTERNAL_H

#include "core/doctor/doctor.h"

enum kind {
    KIND_EXHAUSTION,
    KIND_OVERSIZE,
    KIND_FRAGMENTATION,
    KIND_FULL,
    KIND_LIMIT,
    KIND_NEIGHBOUR,
    KIND_REFUSED,
    KIND_GPU_MEMORY,
    KIND_OUTSIDE,
    KIND_LIBRARY,
    KIND_NCCL_MEMORY,
    KIND_KV_CACHE,
    KIND_STARTUP_MEMORY,
    KIND_STATIC_FRACTION,
    KIND_KV_SLOTS,
    KIND_KERNEL_MEMORY,
    KIND_PRESSURE,
    KIND_RETRACTED,
    KIND_HOST_KERNEL,
    KIND_HOST_CGROUP,
    KIND_HOST_SLURM,
    KIND_HOST_RAY,
    KIND_HOST_ALLOCATION,
    KIND_HOST_LOADER,
    KIND_SHARED_MEMORY,
    KIND_BUS_ERROR,
    KIND_KILLED,
    KIND_DISK,
    KIND_NCCL_ERROR,
    KIND_COLLECTIVE_TIMEOUT,
    KIND_CUDA_FAULT,
    KIND_CUDA_HARDWARE,
    KIND_CUDA_SETUP,
    KIND_RENDEZVOUS,
    KIND_PEER_LOST,
    KIND_CRASH,
    KIND_ABORTED,
    KIND_RAY_WORKER,
    KIND_CHILD,
    KIND_INTERRUPTED,
    KIND_NETWORK,
    KIND_TIME_LIMIT,
    KIND_CANCELLED,
    KIND_TERMINATED,
    KIND_HANGUP,
    KIND_MISSING_MODULE,
    KIND_MODEL_MISSING,
    KIND_ARGUMENTS,
    KIND_CONTEXT_PARALLEL,
    KIND_CONFIGURATION,
    KIND_RESOURCE_LIMIT,
    KIND_DIVERGED,
    KIND_EXCEPTION,
    KIND_COUNT,
};

enum symptom_flag {
    SYMPTOM_TORCH = 1,     // the numbers decide which kind it is
    SYMPTOM_LINES = 2,     // the message goes on over the next lines
    SYMPTOM_EXCEPTION = 4, // a Python exception's name, where one would be printed
    SYMPTOM_TRACEBACK = 8, // the head of a traceback: no symptom itself, but its end is one
    SYMPTOM_PHASE = 16,    // no symptom: from here on the run is at something else
    SYMPTOM_SAID = 32,     // nor this: a number that a trainer prints, where it is at `phase`
};

// One way to say something: a line that holds `anchor` and each of the `needs`.
struct symptom {
    const char *anchor; // at least SCAN_PREFIX bytes, and rare in healthy logs
    const char *needs;  // separated by '|', NULL for none
    enum kind kind;
    unsigned flags;
    const char *remedy;      // where the kind's are too general
    enum doctor_phase phase; // that the message itself tells
    enum doctor_said said;
};

extern const struct symptom symptoms[];
extern const ptrdiff_t symptom_count;

// ------------------------------------------------------------------ the scan

enum { SCAN_PREFIX = 8 };

struct scan;

struct scan *scan_new(struct arena *a);

// The first place in [from, limit) where an anchor begins, or `limit`; text goes on after it.
ptrdiff_t scan_next(const struct scan *s, struct str text, ptrdiff_t from, ptrdiff_t limit);

// The symptoms whose anchor begins at `text`: -1 to start with, -1 at the end.
ptrdiff_t scan_symptom(const struct scan *s, struct str text, ptrdiff_t previous);

// ------------------------------------------------------------------ one message

// The part of the log around an anchor. An anchor that begins with a line feed takes its line's
// end along.
struct passage {
    struct str line;
    ptrdiff_t anchor; // in the line
    bool cut;         // the line begins before it
};

// What the anchors of one line, which are read from left to right, need of the text around them:
// each byte is looked at once, not once for every anchor.
enum { MOST_SYMPTOMS = 512 };
struct reading {
    ptrdiff_t looked;      // how far silencing texts were looked for
    bool silenced;         // what follows is source, a sample or a prompt
    ptrdiff_t quotes_read; // how far strings were followed
    ptrdiff_t open;        // the string that is open there; -1: none
    ptrdiff_t judged;      // the string whose key was read; -1: none
    bool is_data;          // and what it said
    bool backtick_known;   // where the line's last backtick is
    ptrdiff_t backtick;    // -1: nowhere
    uint64_t needs_known[MOST_SYMPTOMS / 64], needs_met[MOST_SYMPTOMS / 64];
};
struct reading reading_begin(void);

ptrdiff_t text_find(struct str text, struct str part, ptrdiff_t from); // -1: not there
bool text_has(struct str text, const char *part);

// Whether the line shows, before this place, that all that follows is only shown: source, a sample,
// a prompt.
bool passage_is_silenced(const struct passage *p, struct reading *r);

// Whether the line only shows text that says it.
bool passage_is_quoted(const struct passage *p, struct reading *r);

// The turns of a conversation that is printed whole, around a place that only moves on: marks are
// looked for once. Places count from the start of the log.
enum { TURN_KINDS = 4, TURN_BYTES = 4 << 10 };
struct turn_mark {
    uint64_t place, sought;
    bool found, is_end;
};
struct turns {
    uint64_t read; // how far marks before the place were looked for
    uint64_t last[TURN_KINDS];
    bool is_open[TURN_KINDS]; // the last mark began a turn
    struct turn_mark next[TURN_KINDS];
};

// Whether the place, in a text that begins after `dropped` bytes, lies in such a turn.
bool turns_hold(struct turns *t, struct str text, uint64_t dropped, ptrdiff_t place);

// The symptom that this place shows, or NULL.
const struct symptom *symptom_at(const struct scan *s, const struct passage *p, struct reading *r);

// What a line shows that a traceback leads to, where nothing more special is said in it.
extern const struct symptom symptom_exception;

// What the frames of a traceback, from the first to the last, tell of the phase.
struct phase_told {
    enum doctor_phase phase;
    const char *remedy;
};
void phase_follow(struct phase_told *told, struct str content);

// Where the traceback whose head is at `head` names its exception; -1: nowhere in the text.
struct traceback {
    ptrdiff_t exception;
    struct str frame; // 'File "train.py", line 7, in main', the last
    struct phase_told told;
};
struct traceback traceback_follow(struct str text, ptrdiff_t head);

// The numbers in a message, and what those of torch's allocator say.
void numbers_read(struct doctor_finding *f, struct str text);
enum kind numbers_judge(const struct doctor_finding *f);

// Whose message it is; `before` is the text that ends where the line begins.
void place_read(struct doctor_finding *f, const struct passage *p, struct str before);

struct progress {
    int64_t step, total;
    ptrdiff_t at;      // of the line in the text
    ptrdiff_t earlier; // the last line that reports fewer steps by the same count; -1: none
    bool bar;          // drawn again whenever it closes
    bool found;
};

// The last report by another count before the last.
struct progress_between {
    struct progress last;
    bool closed; // what came after it went on from before it
    bool known;  // whether it did
};

// Whether two steps of the same count lie between the reports: with one, ranks may still differ.
static inline bool progress_went_on(const struct progress *from, const struct progress *to)
{
    return from->found && from->total == to->total && to->step > from->step + 1;
}

// The last step that `text` reports.
struct progress progress_last(struct progress_between *between, struct str text);

// What is followed of a run on the way. Places count from the start of the log.
enum { COURSE_BEHIND_BYTES = 256 << 10 }; // where a step is looked for
struct course {
    struct progress progress; // the last one seen
    uint64_t progress_place;
    uint64_t earlier_place;  // of the last report of fewer steps by the same count; 0: none
    uint64_t sought;         // steps have been looked for up to here
    struct progress outer;   // the last one by another count
    bool nested;             // the last one counts something inside of it
    enum doctor_phase phase; // that a line named last
    uint64_t phase_place;
    struct progress then; // at that line
    int64_t said[DOCTOR_SAID_COUNT];
};
void course_begin(struct course *c);

// Looks for steps up to `place` of a window that begins after `dropped` bytes.
void course_follow(struct course *c, struct str window, uint64_t dropped, ptrdiff_t place);

// Takes what the line says from its anchor on.
void course_hear(struct course *c, const struct symptom *s, struct str rest, uint64_t place);

enum doctor_phase course_phase(const struct course *c); // as lines name it, until steps go on
struct progress course_steps(const struct course *c, enum doctor_phase phase); // of the training

// Whether steps were reported after it: one more is only another rank's, and a bar tells only by
// going on, for it is drawn once more, with all its steps, when an exception closes it.
bool course_survived(const struct course *c, const struct doctor_finding *f, uint64_t place);

#endif
