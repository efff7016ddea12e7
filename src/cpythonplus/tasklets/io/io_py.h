/* Waiting for descriptors, for the Python files of `io`. */
#pragma once

#include "../../_base/compat.h"

extern PyMethodDef plus_io_methods[];
