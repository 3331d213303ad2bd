// Files that --from names, as settings: requests of our own, frameworks' files and launch scripts,
// one by one or a folder of them.
#ifndef FATHOM_HOST_FORMATS_REQUEST_H
#define FATHOM_HOST_FORMATS_REQUEST_H

#include "core/foreign/foreign.h"

// "-" is standard input. Of a folder, all .yaml, .yml, .json, .sh, .sbatch and .slurm are read, by
// name. Files that these name are read, too, where they are: beside them or from the current
// folder.
bool request_read(struct settings *out, struct foreign *f, struct str path,
                  struct error *e) MUST_USE;

#endif
