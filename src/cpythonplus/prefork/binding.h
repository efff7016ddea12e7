/* Method tables of the folder prefork. */
#ifndef PLUS_PREFORK_BINDING_H
#define PLUS_PREFORK_BINDING_H

#include "../_base/compat.h"

extern PyMethodDef plus_prefork_methods[];

#endif
