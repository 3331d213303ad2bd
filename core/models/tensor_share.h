// What a rank of transformers' tensor parallel has of a model: a smaller one, whose hidden states
// and norms are as wide as ever.
#ifndef FATHOM_MODELS_TENSOR_SHARE_H
#define FATHOM_MODELS_TENSOR_SHARE_H

#include "core/job/job.h"

// The job as a rank has it; the same where nothing is cut.
const struct job *job_share(const struct job *p, struct arena *a);

#endif
