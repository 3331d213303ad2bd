// Values that name variables of the environment, as OmegaConf's files have them:
// ${oc.env:NAME,default}, ${oc.env:NAME}, ${oc.decode:...} around either, in each other.
#ifndef FATHOM_HOST_FORMATS_VARIABLES_H
#define FATHOM_HOST_FORMATS_VARIABLES_H

#include "core/settings/settings.h"

// Puts in what is set, or the default. What has neither stays as it is, for its reader to refuse
// where it matters.
void variables_resolve(struct settings *s);

#endif
