// Options as other programs call them, for those who try them here.
#ifndef FATHOM_CLI_ELSEWHERE_H
#define FATHOM_CLI_ELSEWHERE_H

#include "core/base/str.h"

// What is meant by it here, such as "--batch"; NULL where it is not known.
const char *option_elsewhere(struct str name);

#endif
