/* What cpythonplus.tasklets._pickling.reducing is built on. */
#ifndef PLUS_TASKLETS_PICKLING_PY_H
#define PLUS_TASKLETS_PICKLING_PY_H

#include "../../_base/compat.h"

extern PyMethodDef plus_pickling_methods[];

/* With the module's functions added, and its types ready. */
int
plus_pickling_prepare(PyObject *module);

#endif
