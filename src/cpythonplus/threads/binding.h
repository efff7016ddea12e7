/* The threads room's part of the extension module. */
#pragma once

#include "arguments.h"
#include "state.h"
#include "statistics_py.h"

int
plus_threads_exec(PyObject *module);
