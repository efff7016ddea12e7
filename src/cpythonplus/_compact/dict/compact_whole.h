/* Slots of the type CompactDict that use all entries.  GIL held; other code may run. */
#pragma once

#include "compact_dict.h"

PyObject *
plus_compact_merge(PyObject *left, PyObject *right);
PyObject *
plus_compact_inplace_merge(PyObject *dict, PyObject *other);
PyObject *
plus_compact_richcompare(PyObject *dict, PyObject *other, int op);
PyObject *
plus_compact_repr(PyObject *dict);
