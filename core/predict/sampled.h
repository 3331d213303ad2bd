// The batches that a job has of a user's own data (--data with padded or packed rows): those that
// the trainer's sampler hands to a rank, of which the first and the longest are played.
#ifndef FATHOM_PREDICT_SAMPLED_H
#define FATHOM_PREDICT_SAMPLED_H

#include "core/job/job.h"

// Whose sampler is known, of a job whose rows are not full.
bool sampler_is_known(const struct job *job);

// Else sequences come as they are in the data.
bool sampler_shuffles(const struct job *job);

// Where the user's sequences are among the settings, one by one.
bool sampled_read(struct job *job, struct arena *a, struct error *e) MUST_USE;

// The most tokens of a row that any rank may get; 0 where batches are not drawn.
bool sampled_longest(uint64_t *tokens, struct arena scratch, const struct job *job,
                     struct error *e) MUST_USE;

#endif
