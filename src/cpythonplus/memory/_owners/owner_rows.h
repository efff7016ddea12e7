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
