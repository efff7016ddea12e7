/* Method tables of the folder prefork. */
#pragma once

#include "../_base/compat.h"

extern PyMethodDef plus_prefork_methods[];
