// Whether a job can be launched: safe, tight, or no. Safe is what stays free after the predicted
// peak, held against how far predictions of such jobs were off (core/evidence).
#ifndef FATHOM_PREDICT_VERDICT_H
#define FATHOM_PREDICT_VERDICT_H

#include "core/evidence/evidence.h"

enum grade { GRADE_NO, GRADE_TIGHT, GRADE_SAFE };

const char *grade_name(enum grade grade); // "safe"

// What the user wants: bytes to leave free on the card instead of what the evidence asks for, and
// the memory of a node.
struct wanted {
    bool margin_given;
    uint64_t margin_bytes;
    uint64_t host_bytes; // 0: not known
};

// Of a job whose torch may take so much. Fails where a margin leaves nothing of it.
bool wanted_read(struct wanted *w, struct arena scratch, const struct job *job,
                 uint64_t limit_bytes, struct error *e) MUST_USE;

// What is judged.
struct outcome_figures {
    bool fits; // the card
    uint64_t limit_bytes, reserved_bytes, host_bytes;
    uint64_t flushes; // in steps 2 and 3, of the cache, before a request could be served
    uint64_t outside_bytes;
    uint64_t managed_bytes; // in unified memory: on the card while there is room
};

struct verdict {
    enum grade grade;
    bool host_is_short; // of memory: then the answer is no, whatever the card says
    struct wanted wanted;
    struct evidence evidence;
    uint64_t free_bytes;   // of what torch may take, at the peak
    uint64_t error_bytes;  // that torch may reserve more than predicted
    uint64_t spread_bytes; // that may live outside torch beyond what is counted
    uint64_t flushes;
    uint64_t driver_low_bytes, driver_high_bytes; // of the card, as the driver shows it; 0 for no
};

struct verdict verdict_of(const struct job *job, const struct wanted *w,
                          const struct outcome_figures *f);

// To be left free for a safe answer.
uint64_t verdict_margin_bytes(const struct verdict *v);

#endif
