/* The C functions for cpythonplus.tasklets._pickling.reducing. */
#pragma once

#include "../../_base/compat.h"

extern PyMethodDef plus_pickling_methods[];

/* Called when the module's functions are added and its types are ready. */
int
plus_pickling_prepare(PyObject *module);
