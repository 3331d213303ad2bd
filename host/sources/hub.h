// Model files from Hugging Face: first what its cache on this machine holds, then the network.
// libcurl is loaded at run time, so a machine without it only lacks the download. The token goes to
// the endpoint itself and to no host that it redirects to.
#ifndef FATHOM_HOST_SOURCES_HUB_H
#define FATHOM_HOST_SOURCES_HUB_H

#include <stdbool.h>

#include "core/base/arena.h"
#include "core/base/error.h"
#include "core/base/str.h"

struct hub_options {
    struct str cache_folder; // the one that holds models--OWNER--NAME; empty for none
    struct str endpoint;     // "https://huggingface.co"; a user and password in it are not said
    struct str token;        // empty for none
    bool offline;
    long connect_timeout_s, total_timeout_s; // the total covers redirects too
};

// OWNER/NAME as the hub accepts it. A path such as "./llama" or "/models/llama" never is one.
bool hub_is_id(struct str text);

// The path of a file in the cache: of the revision that main points at, else of the newest snapshot
// that has it. False when there is none, which is no error.
bool hub_cached(struct str *path, struct arena *a, const struct hub_options *o, struct str id,
                struct str file);

struct hub_file {
    struct str id, file;
};

// Downloads one file of at most 16 MiB.
bool hub_fetch(struct str *body, struct arena *a, const struct hub_options *o,
               struct hub_file wanted, struct error *e) MUST_USE;

#endif
