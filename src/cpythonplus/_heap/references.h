/* By which attribute, key or index one object refers to another: names for what the walk over the heap finds.
 *
 * All with the GIL held; nothing is made or changed. */
#ifndef PLUS_MEMORY_REFERENCES_H
#define PLUS_MEMORY_REFERENCES_H

#include "../_base/compat.h"

/* Calls `visit` for each attribute that an instance has in itself: inline values, slots, fields of a C type that
 * Python sees.  `name` is a str, borrowed, or NULL and then `field` is it.  Ends at the first result that is
 * not 0, which is returned; else 0. */
int
plus_attributes_visit(PyObject *op,
                      int (*visit)(PyObject *name, const char *field, PyObject *value, void *arg),
                      void *arg);

/* How `from` refers to `to`: a new tuple ("attribute", str), ("key", object), ("index", int), ("dict", None) of what is
 * the object's dict, ("", None) if that is not to be seen.  NULL with an exception. */
PyObject *
plus_reference_label(PyObject *from, PyObject *to);

#endif
