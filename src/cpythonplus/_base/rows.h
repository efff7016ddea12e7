/* Lists that are made row by row, with one check for an error at the end. */
#pragma once

#include "compat.h"

/* Append `row`, made by Py_BuildValue(), and take the reference to it.  `*rows` becomes NULL on an error, with an
 * exception; it may be NULL already, and then the row is dropped. */
static inline void
plus_append_row(PyObject **rows, PyObject *row)
{
    if (*rows != NULL && (row == NULL || PyList_Append(*rows, row) < 0)) {
        Py_CLEAR(*rows);
    }
    Py_XDECREF(row);
}
