/* What this room adds to the extension. */
#ifndef PLUS_INTERP_BINDING_H
#define PLUS_INTERP_BINDING_H

#include "../_base/compat.h"

extern PyMethodDef plus_interp_methods[];

#endif
