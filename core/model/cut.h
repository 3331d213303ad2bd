// How ranks of tensor parallel divide a weight: its outputs, its inputs, or the words of embedding
// and head.
#ifndef FATHOM_MODEL_CUT_H
#define FATHOM_MODEL_CUT_H

enum tensor_cut { CUT_NONE, CUT_OUTPUTS, CUT_INPUTS, CUT_WORDS };

#endif
