/* A tasklet's context: methods and attributes of the type, with the prototypes that its tables need. */
#pragma once

#include "../core/task.h"

/* Returns id() of its context, or None if it has none yet. */
PyObject *
plus_tasklet_context_id(PyObject *op, void *ignored);
PyObject *
plus_tasklet_set_context(PyObject *op, PyObject *context);
PyObject *
plus_tasklet_context_run(PyObject *op, PyObject *const *args, Py_ssize_t count, PyObject *kwnames);
