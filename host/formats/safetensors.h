// What a model folder's safetensors files hold, told from their headers alone: the weights are
// never loaded. Headers are JSON and too large for flat settings (a hundred thousand tensors), so
// safetensors.c walks them with jansson itself; it and json_in.c are the only files that know it.
#ifndef FATHOM_HOST_FORMATS_SAFETENSORS_H
#define FATHOM_HOST_FORMATS_SAFETENSORS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "core/base/error.h"
#include "core/base/str.h"

enum { WEIGHTS_DTYPES = 22, WEIGHTS_NAME_BYTES = 128 };

struct weights {
    uint64_t parameters; // elements of all tensors; packed ones count as they are stored
    uint64_t tensors;
    uint64_t bytes;
    uint64_t files;
    uint64_t missing_files; // named by the index, not in the folder
    char first_missing[WEIGHTS_NAME_BYTES];
    bool quantized; // types that only quantized weights have hold a tenth of the bytes or more
    uint64_t dtype_bytes[WEIGHTS_DTYPES];
};

// The types in use, the one with the most bytes first: "BF16", "F8_E4M3, BF16".
struct str weights_dtypes(struct arena *a, const struct weights *w);

// Adds the tensors of one header (the JSON alone).
bool safetensors_header_read(struct weights *w, struct arena scratch, struct str header_json,
                             struct str source, struct error *e) MUST_USE;

// Adds one file; also checks that it is as long as its tensors need.
bool safetensors_file_read(struct weights *w, struct arena scratch, struct str path,
                           struct error *e) MUST_USE;

// Sets *w from model.safetensors, else from the files that model.safetensors.index.json names.
// *found is false when no weights were read; indexed files that are missing are counted, no error.
bool weights_of_folder(struct weights *w, bool *found, struct arena scratch, struct str folder,
                       struct error *e) MUST_USE;

#endif
