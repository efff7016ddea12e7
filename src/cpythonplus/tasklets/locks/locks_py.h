/* The types `Lock` and `RLock`. */
#pragma once

#include "../../_base/compat.h"

extern PyTypeObject plus_task_lock_type, plus_task_rlock_type;

/* Makes a Lock or RLock for importlib. */
PyObject *
plus_task_lock_for_imports(PyObject *module, PyObject *type);
