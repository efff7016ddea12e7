/* What numpy's arrays refer to, which they tell nobody: the collector does not know them.
 *
 * A view keeps the array that it looks into (`base`), however small the part; an array of objects keeps these. */
#ifndef PLUS_INTERP_NUMPY_ARRAYS_H
#define PLUS_INTERP_NUMPY_ARRAYS_H

#include "../../_base/compat.h"

/* Makes two small arrays the first time that numpy is there, and finds out whether arrays are as its header files say;
 * where they are not, or in an interpreter without numpy, no object is an array.  With the GIL held. */
void
plus_numpy_arrays_learn(void);

/* Subclasses inherit it; NULL: no object is an array. */
extern getbufferproc plus_numpy_array_getbuffer;

static inline bool
plus_is_numpy_array_type(const PyTypeObject *type)
{
    return plus_numpy_array_getbuffer != NULL && type->tp_as_buffer != NULL &&
           type->tp_as_buffer->bf_getbuffer == plus_numpy_array_getbuffer;
}

/* As plus_referents_visit(), of an instance of such a type. */
int
plus_numpy_array_visit(PyObject *array, visitproc visit, void *arg);

#endif
