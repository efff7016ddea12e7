/* What this room adds to the extension. */
#ifndef PLUS_PREFORK_BINDING_H
#define PLUS_PREFORK_BINDING_H

#include "../_base/compat.h"

extern PyMethodDef plus_prefork_methods[];

#endif
