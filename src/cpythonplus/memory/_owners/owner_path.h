/* How an object is reached from a root, as plain data that marshal can write.
 *
 * Functions return a new reference, NULL with an exception. */
#ifndef PLUS_MEMORY_OWNER_PATH_H
#define PLUS_MEMORY_OWNER_PATH_H

#include "../../_heap/reach.h"

/* The full name of a class. */
PyObject *
plus_type_name(const PyTypeObject *type);

/* A text that marshal can write: a program may put an instance of a class derived from str where a name is.  None stands for
 * no name; NULL, without an exception, may be given for one. */
PyObject *
plus_plain_text(PyObject *text);

/* (how, label, type's name); how: as of references.h, and "interned" of a key that is a word of the program; "" and a label
 * of None where nothing can be told; "variable of context"; "...": steps are left out. */
PyObject *
plus_owner_step(const struct plus_heap_graph *graph, uint32_t from, uint32_t to);

/* A list of such steps, from a root on; what lies in the middle of very long ones is left out. */
PyObject *
plus_owner_path(const struct plus_reach *owners, uint32_t node);

#endif
