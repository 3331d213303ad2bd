// What is shown of models and machines, as text for people and as JSON for programs. Reports write
// into a buf and decide nothing.
#ifndef FATHOM_REPORT_REPORT_H
#define FATHOM_REPORT_REPORT_H

#include "core/base/buf.h"
#include "core/base/json_out.h"
#include "core/base/view.h"
#include "core/hardware/hardware.h"
#include "core/model/model.h"

// The catalogue of models.
bool report_models(struct buf *out, const struct view *v, struct error *e) MUST_USE;
bool report_models_json(struct json_out *j, struct arena *a, struct error *e) MUST_USE;

// One model. The JSON form writes the fields "model" and "parameters" into an open object.
void report_model(struct buf *out, const struct view *v, const struct model *m,
                  const struct parameters *p);
void report_model_json(struct json_out *j, const struct model *m, const struct parameters *p);

// What a model folder's safetensors headers hold, as the host counted it into the settings
// "weights.*"; files == 0 where there was no folder or no weights in it.
struct weights_on_disk {
    uint64_t parameters, tensors, bytes, files, missing_files;
    struct str types;         // "BF16"
    struct str first_missing; // file the index names
    bool quantized;           // stored elements are not parameters
};
bool weights_from_settings(struct weights_on_disk *w, const struct settings *s,
                           struct error *e) MUST_USE;
void report_weights(struct buf *out, const struct view *v, const struct weights_on_disk *w,
                    const struct model *m, const struct parameters *p);
void report_weights_json(struct json_out *j, const struct weights_on_disk *w, const struct model *m,
                         const struct parameters *p);

// Machines.
void report_gpus(struct buf *out, const struct view *v);
void report_gpu_json(struct json_out *j, const struct gpu *g);
void report_hardware(struct buf *out, const struct view *v, const struct hardware *h);
void report_hardware_json(struct json_out *j, const struct hardware *h);

// One sentence: what share of the memory the bf16 weights alone would take.
void report_weights_beside_memory(struct buf *out, const struct view *v, const struct model *m,
                                  const struct parameters *p, const struct hardware *h);

#endif
