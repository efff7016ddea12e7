/* Waiting for descriptors, for the Python files of `io`. */
#ifndef PLUS_TASKLETS_IO_PY_H
#define PLUS_TASKLETS_IO_PY_H

#include "../../_base/compat.h"

extern PyMethodDef plus_io_methods[];

#endif
