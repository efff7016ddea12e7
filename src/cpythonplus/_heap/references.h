/* The attribute, key or index by which one object refers to another, for references that the walk over the heap finds.
 *
 * GIL held; no other object is made or changed. */
#pragma once

#include "../_base/compat.h"

/* Call `visit` for each attribute that is stored in an instance: inline values, slots, fields of a C type that Python
 * sees.  `name` is a borrowed str, or NULL if `field` is the name.  Ends at the first non-zero result, which is
 * returned; else 0. */
int
plus_attributes_visit(PyObject *op,
                      int (*visit)(PyObject *name, const char *field, PyObject *value, void *arg),
                      void *arg);

/* The way in which `from` refers to `to`, a new tuple: ("attribute", str), ("key", object), ("index", int), ("dict",
 * None) if `to` is the dict of the object's attributes, ("", None) if it is unknown.  NULL with an exception. */
PyObject *
plus_reference_label(PyObject *from, PyObject *to);
