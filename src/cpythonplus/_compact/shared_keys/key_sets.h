/* The key sets that dicts share.  GIL held.
 *
 * A dict from an instance's `__dict__` stores its names in the class and only its values itself ("split").
 * PyDict_Copy() of such a dict shares the names, and PyDict_SetItem() of an existing name changes a value: so one dict
 * per key set, the pattern, can be copied for each row.  All of it is public API.  A copy is an ordinary dict for all
 * code, including the interpreter: if it gets a new name, it gets a table of its own. */
#pragma once

#include "../../_base/compat.h"

/* CPython shares at most 30 names, and leaves room for one. */
#define PLUS_KEY_SET_MOST 29

/* A row's items: strong references. */
struct plus_row {
    Py_ssize_t count;
    PyObject *keys[PLUS_KEY_SET_MOST], *values[PLUS_KEY_SET_MOST];
};

/* The key sets that were met, in a bounded table: a set that is met once costs a few bytes, and no pattern. */
struct plus_key_sets;

struct plus_key_sets *
plus_key_sets_new(void); /* NULL without memory, without an exception */

void
plus_key_sets_free(struct plus_key_sets *sets);

/* A new dict with the row's items; from the second row with these keys in this order on, the keys are shared.  NULL
 * without an exception if there is no set to share with; NULL with an exception if it failed.  The keys must be str,
 * not of a subclass. */
PyObject *
plus_key_sets_dict(struct plus_key_sets *sets, const struct plus_row *row);

/* The reason why dicts cannot share keys here, or NULL: dicts of one key set are made and compared with the expected
 * result.  May raise (then NULL, too). */
const char *
plus_key_sets_refusal(void);
