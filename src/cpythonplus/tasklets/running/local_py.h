/* The type `local`. */
#ifndef PLUS_TASKLETS_LOCAL_PY_H
#define PLUS_TASKLETS_LOCAL_PY_H

#include "../../_base/compat.h"

extern PyTypeObject plus_task_local_type;

#endif
