// Where a model's configuration comes from. --model may name a row of the catalogue, a config.json,
// a model folder, or a Hugging Face id; for all but the first, the file is found, read and
// flattened into the settings under "config.", and a folder's weights are counted under "weights.".
// What is a file or folder has its place there too, for files that are read elsewhere.
// Of several models with commas between them, each file is under "configs.N."
// (core/search/sweep.h).
#ifndef FATHOM_HOST_SOURCES_MODEL_SOURCE_H
#define FATHOM_HOST_SOURCES_MODEL_SOURCE_H

#include <stdbool.h>

#include "core/base/error.h"
#include "core/settings/settings.h"
#include "host/files/file.h"
#include "host/sources/hub.h"

// A model's file or folder from the root, or empty where the text names none. Links are followed up
// to the folder only: the hub's cache keeps a config.json under another name elsewhere.
struct str model_source_path(struct arena *a, struct str name);

// Does nothing when there is no model setting or the catalogue has it.
bool model_source_resolve(struct settings *s, const struct hub_options *hub,
                          struct error *e) MUST_USE;

#endif
