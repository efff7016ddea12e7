/* The threads room's part of the extension module. */
#ifndef PLUS_THREADS_BINDING_H
#define PLUS_THREADS_BINDING_H

#include "arguments.h"
#include "state.h"
#include "statistics_py.h"

int
plus_threads_exec(PyObject *module);

#endif
