/* See compact_entries.h. */
#include "compact_entries.h"

Py_ssize_t
plus_compact_next_far(const struct plus_compact *table, Py_ssize_t at)
{
    Py_ssize_t filled = plus_compact_filled(table), from = at;
    struct plus_compact_parts *parts = plus_compact_parts(table);

    /* A table that is used as a queue has many holes in front; `first` makes sure that they are passed only once. */
    if (parts != NULL && from <= parts->first) {
        at = parts->first;
    }
    while (at < filled && plus_compact_at(table, at)->key == NULL) {
        at++;
    }
    if (parts != NULL && from <= parts->first) {
        parts->first = at;
    }
    return at < filled ? at : -1;
}

Py_ssize_t
plus_compact_previous_far(const struct plus_compact *table, Py_ssize_t at)
{
    Py_ssize_t filled = plus_compact_filled(table);

    at = at < filled ? at : filled - 1;
    while (at >= 0 && plus_compact_at(table, at)->key == NULL) {
        at--;
    }
    return at;
}
