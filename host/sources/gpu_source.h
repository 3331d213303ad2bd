// "--gpu auto": this machine's GPUs, written into the setting as the user could have written them.
#ifndef FATHOM_HOST_SOURCES_GPU_SOURCE_H
#define FATHOM_HOST_SOURCES_GPU_SOURCE_H

#include <stdbool.h>

#include "core/base/error.h"
#include "core/settings/settings.h"

// Does nothing unless the gpu setting is "auto".
bool gpu_source_resolve(struct settings *s, struct error *e) MUST_USE;

#endif
