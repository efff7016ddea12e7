/* The referrers of the objects of one class, counted in one walk over the heap: by attribute, global name or variable,
 * else by the class of the referring object.
 *
 * The GIL is held throughout.  No Python object is made before plus_referrers_rows(). */
#pragma once

#include "../../_base/compat.h"

/* A new list of (kind, owner, name, references), name a str or None; kinds:
 *     "attribute"  of instances of the class `owner`, without a dict
 *     "dict"       of instances of the class `owner`, in their dict
 *     "class"      in the namespace of the class `owner`
 *     "module"     in the namespace `owner` of a module
 *     "variable"   of an executing function whose code is `owner`
 *     "type"       from objects of the class `owner`, wherever in them
 * NULL with an exception. */
PyObject *
plus_referrers_rows(PyTypeObject *target);

/* ---- the shortest path to an object from a root: a module's namespace, or a variable of a running function ---- */

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
