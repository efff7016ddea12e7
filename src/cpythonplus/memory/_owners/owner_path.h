/* The path from a root to an object, as plain data that marshal can write.
 *
 * Functions return a new reference, NULL with an exception. */
#pragma once

#include "../../_heap/reach.h"

/* Returns the full name of a class. */
PyObject *
plus_type_name(const PyTypeObject *type);

/* Returns `text` if marshal can write it: a program may put an instance of a class derived from str where a name is
 * expected.  Returns None for any other object.  `text` may be NULL without an exception. */
PyObject *
plus_plain_text(PyObject *text);

/* Returns (how, label, type's name). how: as in references.h; "interned" for a key that is an interned string of the
 * program; "variable of context"; "..." if steps are left out; "" with a label of None if nothing is known. */
PyObject *
plus_owner_step(const struct plus_heap_graph *graph, uint32_t from, uint32_t to);

/* Returns the path to a node as a list of tuples as from plus_owner_step(), beginning at a root; the middle of a very
 * long path is left out. */
PyObject *
plus_owner_path(const struct plus_reach *owners, uint32_t node);
