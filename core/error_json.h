// An error as the JSON object that replies carry.
#ifndef FATHOM_ERROR_JSON_H
#define FATHOM_ERROR_JSON_H

#include "core/base/buf.h"
#include "core/base/error.h"

void error_json(struct buf *out, const struct error *e);

#endif
