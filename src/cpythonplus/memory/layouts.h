/* Where CPython keeps the keys of a dict and the attributes of an instance: what its public headers do not tell.
 * The same from 3.11 to 3.15 but for what is said in the .c.
 *
 * All with the GIL held; nothing is made or changed, but for plus_layouts_verify().  What was not verified must
 * not be asked for. */
#ifndef PLUS_MEMORY_LAYOUTS_H
#define PLUS_MEMORY_LAYOUTS_H

#include "../_base/compat.h"

/* What was found to be as it is known, by objects made for the purpose. */
struct plus_layouts {
    bool keys; /* plus_dict_parts() */
    bool
        values; /* plus_inline_bytes(), plus_inline_attribute(), plus_instance_dict() of managed dicts */
};

/* The first call makes objects, and compares; the interpreter's memory is read through the kernel until it is
 * known to be there.  No exception may be set before, none is afterwards. */
const struct plus_layouts *
plus_layouts_verify(void);

/* Bytes that a dict has outside of itself: its table of keys, 0 if it is shared with others or the empty one, and
 * its values, 0 if they lie in the table or in the instance. */
void
plus_dict_parts(PyObject *dict, Py_ssize_t *keys_bytes, Py_ssize_t *values_bytes);

/* Whether instances of the class may have attributes without a dict. */
bool
plus_has_inline_values(PyTypeObject *type);

/* Bytes of the attributes of an instance that has no dict (or, from 3.13 on, has room for them anyway).
 * Up to 3.12 they are a block of their own and, of the first 30 instances of a class, up to 56 bytes more. */
Py_ssize_t
plus_inline_bytes(PyObject *op);

/* The attribute at `index`, from 0 on, of an instance without a dict: 1 and its name and value, borrowed, the
 * value NULL if it is not set; 0 behind the last one. */
int
plus_inline_attribute(PyObject *op, Py_ssize_t index, PyObject **name, PyObject **value);

/* The dict of an object's attributes if there is one, borrowed; not of a class or module.  None is made. */
PyObject *
plus_instance_dict(PyObject *op);

/* The dict of a class, borrowed: the class holds it.  NULL: there is none. */
PyObject *
plus_class_dict(PyTypeObject *type);

#endif
