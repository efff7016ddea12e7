/* Lists that are made row by row, with one check for an error at the end. */
#pragma once

#include "compat.h"

/* Append `row`, and take the reference to it.  Returns 0, or -1 with an exception: also if `row` is NULL. */
static inline int
plus_append_new(PyObject *list, PyObject *row)
{
    int failed = row != NULL ? PyList_Append(list, row) : -1;

    Py_XDECREF(row);
    return failed;
}

/* Append `row`, made by Py_BuildValue(), and take the reference to it.  `*rows` becomes NULL on an error, with an
 * exception; it may be NULL already, and then the row is dropped. */
static inline void
plus_append_row(PyObject **rows, PyObject *row)
{
    if (*rows == NULL) {
        Py_XDECREF(row);
    }
    else if (plus_append_new(*rows, row) < 0) {
        Py_CLEAR(*rows);
    }
}
