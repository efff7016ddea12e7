/* Sleeping, time-outs and coroutines, for the Python files of `io`. */
#pragma once

#include "../../_base/compat.h"

extern PyMethodDef plus_timing_methods[];
