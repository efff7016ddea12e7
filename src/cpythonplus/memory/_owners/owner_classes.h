/* Classes, and the paths to most of their objects, as plain data that marshal can write.
 *
 * Functions return a new reference, NULL with an exception. */
#pragma once

#include "owner_mark.h"

/* Returns a list of dicts for the classes that have grown since `mark` by `least` / 4 bytes; NULL: all classes with so
 * many bytes. */
PyObject *
plus_class_rows(const struct plus_reach *owners, const struct plus_mark *mark, uint64_t least);

/* Returns a dict for one class; None if no object of it is a node of the graph. */
PyObject *
plus_class_row(const struct plus_reach *owners, const PyTypeObject *type);
