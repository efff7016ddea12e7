/* The shortest path to an object from what is there anyway: the namespace of a module, or a variable of a function
 * that is being executed. */
#ifndef PLUS_MEMORY_ROOT_PATH_H
#define PLUS_MEMORY_ROOT_PATH_H

#include "../../_base/compat.h"

/* A new tuple (root, name, objects).  `objects` is a list that leads from the root to the target, each referring to the
 * next.  The root is a module whose namespace is the first of them; or a code object, whose variable `name` the
 * first one is; or None if only C code holds the first one, or if it is garbage.
 *
 * target: an object; or, with any_instance, a class, and some instance of it is meant.  caller: a code object
 * whose variables do not count, nor do those of code in files below `own`, a str; or None.
 *
 * Walks over the heap once for each step, with the GIL held.  NULL with an exception; LookupError if there is no
 * instance. */
PyObject *
plus_root_path(PyObject *target, bool any_instance, PyObject *caller, PyObject *own);

#define PLUS_ROOT_PATHS_MAX 16

/* The same of several objects at once, a tuple of at most that many, in a copy of the process (heap_copy.h), for so many
 * seconds at most.  A new tuple: a list with a tuple as above for each, None where no path from a module or a variable is
 * found, or where the program has changed it meanwhile; and for how many nanoseconds the GIL was held at most.
 *
 * Lets go of the GIL while the copy works.  RuntimeError, OSError: there was no copy, or it has not ended. */
PyObject *
plus_root_paths(PyObject *targets, PyObject *own, int seconds);

#endif
