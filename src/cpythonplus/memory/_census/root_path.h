/* The shortest path to an object from a root: the namespace of a module, or a variable of a function that is being
 * executed. */
#pragma once

#include "../../_base/compat.h"

/* Returns a new tuple (root, name, objects).  `objects` is a list from the root to the target, each object referring
 * to the next. root: a module whose namespace is the first object; a code object whose variable `name` is the first
 * object; or None if only C code refers to the first object, or if it is garbage.
 *
 * target: an object; with any_instance a class, and the path leads to some instance. caller: a code object whose
 * variables do not count, or None. own: variables of code in files below this folder do not count; a str, or None.
 *
 * Walks over the heap once for each step, with the GIL held.  NULL with an exception; LookupError if there is no
 * instance. */
PyObject *
plus_root_path(PyObject *target, bool any_instance, PyObject *caller, PyObject *own);

#define PLUS_ROOT_PATHS_MAX 16

/* Find the paths of several objects at once, a tuple of at most PLUS_ROOT_PATHS_MAX, in a copy of the process
 * (heap_copy.h) that may run for `seconds`.  Returns a new tuple of two items.  The first is a list: for each object a
 * tuple as from plus_root_path(), or None if no path from a module or a variable was found, or if the program has
 * changed the path meanwhile.  The second is the longest time for which the GIL was held, in ns.
 *
 * Releases the GIL while the copy works.  RuntimeError, OSError: there was no copy, or it has not ended. */
PyObject *
plus_root_paths(PyObject *targets, PyObject *own, int seconds);
