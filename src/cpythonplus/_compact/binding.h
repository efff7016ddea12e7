/* Method tables and entry points of the folder _compact. */
#pragma once

#include "../_base/compat.h"

extern PyMethodDef plus_shared_keys_methods[]; /* shared_keys_py.c */

/* Adds CompactDict and the types of its views to the module (compact_dict_py.c). 0, or -1 with an exception. */
int
plus_compact_exec(PyObject *module);

/* Adds Record to the module (record_py.c). 0, or -1 with an exception. */
int
plus_record_exec(PyObject *module);
