/* Sleeping, time-outs and coroutines, for the Python files of `io`. */
#ifndef PLUS_TASKLETS_TIMING_PY_H
#define PLUS_TASKLETS_TIMING_PY_H

#include "../../_base/compat.h"

extern PyMethodDef plus_timing_methods[];

#endif
