/* Owners as plain data that marshal can write; owners_py.c describes it.
 *
 * Functions return a new reference, NULL with an exception. */
#pragma once

#include "owner_search.h"

/* Returns a dict. */
PyObject *
plus_owner_as_dict(const struct plus_owners_search *it, const struct plus_owner_row *row);

/* Returns a list of dicts (function or class, file, line, number, ...) for the sums of one kind that have grown. */
PyObject *
plus_together_rows(const struct plus_owners_search *it, enum plus_together_kind kind);

/* ---- classes, and the paths to most of their objects ---- */

/* Returns a list of dicts for the classes that have grown since `mark` by `least` / 4 bytes; NULL: all classes with so
 * many bytes. */
PyObject *
plus_class_rows(const struct plus_reach *owners, const struct plus_mark *mark, uint64_t least);

/* Returns a dict for one class; None if no object of it is a node of the graph. */
PyObject *
plus_class_row(const struct plus_reach *owners, const PyTypeObject *type);
