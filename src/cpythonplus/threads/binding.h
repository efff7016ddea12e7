/* What the room adds to the extension, and what the types of the rooms above use of its types. */
#ifndef PLUS_THREADS_BINDING_H
#define PLUS_THREADS_BINDING_H

#include "arguments.h"
#include "state.h"
#include "statistics_py.h"

int
plus_threads_exec(PyObject *module);

#endif
