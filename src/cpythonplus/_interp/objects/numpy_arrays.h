/* The references of numpy's arrays, which have no tp_traverse.
 *
 * A view keeps its base array (`base`), however small the part; an array of objects keeps these. */
#pragma once

#include "../../_base/compat.h"

/* Find out whether arrays have the layout of numpy's header files; makes two small arrays when numpy is first found.
 * If they have not, or in an interpreter without numpy, no object counts as an array.  GIL held. */
void
plus_numpy_arrays_learn(void);

/* Subclasses inherit it; NULL if no object counts as an array. */
extern getbufferproc plus_numpy_array_getbuffer;

static inline bool
plus_is_numpy_array_type(const PyTypeObject *type)
{
    return plus_numpy_array_getbuffer != NULL && type->tp_as_buffer != NULL &&
           type->tp_as_buffer->bf_getbuffer == plus_numpy_array_getbuffer;
}

/* As plus_referents_visit(), for an instance of such a type. */
int
plus_numpy_array_visit(PyObject *array, visitproc visit, void *arg);
