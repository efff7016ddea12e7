/* Classes, and where most of their objects are, as plain data that marshal can write.
 *
 * Functions return a new reference, NULL with an exception. */
#ifndef PLUS_MEMORY_OWNER_CLASSES_H
#define PLUS_MEMORY_OWNER_CLASSES_H

#include "owner_mark.h"

/* Of those that have grown since a mark (NULL: of all), a list of dicts. */
PyObject *
plus_class_rows(const struct plus_reach *owners, const struct plus_mark *mark, uint64_t least);

/* Of one class, a dict; None: it has no object that is a node. */
PyObject *
plus_class_row(const struct plus_reach *owners, const PyTypeObject *type);

#endif
