/* The key sets that dicts share.  With the GIL held.
 *
 * A dict that an instance's `__dict__` gave stores its names in the class and only its values itself ("split").  PyDict_Copy()
 * of such a dict shares the names, and PyDict_SetItem() of a name that it has changes a value: so one dict per key set, the
 * pattern, gives as many dicts as are asked for.  All of it is public API.  A copy is an ordinary dict for everybody, also for
 * the interpreter: one that gets a name that is not shared is given a table of its own. */
#ifndef PLUS_MEMORY_KEY_SETS_H
#define PLUS_MEMORY_KEY_SETS_H

#include "../../_base/compat.h"

/* CPython shares 30 names at most, and makes room for one less. */
#define PLUS_KEY_SET_MOST 29

/* What a row has: strong references. */
struct plus_row {
    Py_ssize_t count;
    PyObject *keys[PLUS_KEY_SET_MOST], *values[PLUS_KEY_SET_MOST];
};

/* The key sets that were met, in a bounded table: what is met once costs a few bytes, and no pattern. */
struct plus_key_sets;

struct plus_key_sets *
plus_key_sets_new(void); /* NULL without memory, without an exception */

void
plus_key_sets_free(struct plus_key_sets *sets);

/* A new dict with the row's items, whose keys are shared from the second row with these keys in this order on.  NULL
 * without an exception: there is none to share with, yet or at all; NULL with an exception: it failed.  The keys are
 * str themselves, no subclass. */
PyObject *
plus_key_sets_dict(struct plus_key_sets *sets, const struct plus_row *row);

/* Why nothing can be shared here, or NULL: dicts of one key set are made and compared with what they must be.  May raise
 * (then NULL, too). */
const char *
plus_key_sets_refusal(void);

#endif
