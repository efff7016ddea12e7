/* The fields are those of numpy's public header (`PyArrayObject_fields` and the beginning of `PyArray_Descr` in
 * numpy/core/include/numpy/ndarraytypes.h), which C extensions are compiled against, from numpy 1.7 to 2.x.  They are
 * verified all the same: we do not link with numpy, and another module may have its name.
 *
 * Rejected: reading the attribute `base`, which makes references and runs code of subclasses. */
#include "numpy_arrays.h"

#include "layouts.h"

#define OWNS_DATA 0x4 /* NPY_ARRAY_OWNDATA */
#define DOUBLES 12    /* NPY_DOUBLE */
#define OBJECTS 17    /* NPY_OBJECT: an array of pointers; user-defined types have other numbers */

struct array {
    PyObject_HEAD char *data;
    int dimensions;
    Py_ssize_t *shape, *strides;
    PyObject *base;
    struct descr *descr;
    int flags;
};

struct descr {
    PyObject_HEAD PyTypeObject *type;
    char kind, character, byte_order, flags;
    int number; /* of the element type */
};

getbufferproc plus_numpy_array_getbuffer;

int
plus_numpy_array_visit(PyObject *op, visitproc visit, void *arg)
{
    const struct array *array = (struct array *)op;

    Py_VISIT(array->base);
    if ((array->flags & OWNS_DATA) == 0 || array->descr == NULL ||
        array->descr->number != OBJECTS || array->data == NULL) {
        return 0;
    }
    /* The data of an array that owns it are contiguous. */
    Py_ssize_t count = 1;

    for (int i = 0; i < array->dimensions; i++) {
        count *= array->shape[i];
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        Py_VISIT(((PyObject **)array->data)[i]);
    }
    return 0;
}

/* ---- proof ---------------------------------------------------------------------------------------- */

static bool
is_as_said(PyObject *numbers, PyObject *view)
{
    const struct array *whole = (struct array *)numbers, *part = (struct array *)view;

    return whole->dimensions == 2 && whole->shape[0] == 3 && whole->shape[1] == 5 &&
           whole->strides[0] == 5 * 8 && whole->strides[1] == 8 && whole->base == NULL &&
           (whole->flags & OWNS_DATA) != 0 && whole->descr->number == DOUBLES &&
           part->base == numbers && (part->flags & OWNS_DATA) == 0 && part->data == whole->data;
}

static bool
has_objects(PyObject *objects)
{
    const struct array *array = (struct array *)objects;

    return array->dimensions == 1 && array->shape[0] == 2 && array->descr->number == OBJECTS &&
           (array->flags & OWNS_DATA) != 0 && array->data != NULL &&
           ((PyObject **)array->data)[1] == Py_Ellipsis;
}

static bool
is_known(PyTypeObject *type)
{
    PyObject *numbers = PyObject_CallFunction((PyObject *)type, "((ii))", 3, 5);
    PyObject *view = numbers == NULL ? NULL : PyObject_GetItem(numbers, Py_Ellipsis);
    PyObject *objects =
        view == NULL ? NULL : PyObject_CallFunction((PyObject *)type, "((i)s)", 2, "O");
    bool known = objects != NULL && PySequence_SetItem(objects, 1, Py_Ellipsis) == 0 &&
                 Py_IS_TYPE(numbers, type) && Py_IS_TYPE(view, type) && Py_IS_TYPE(objects, type) &&
                 is_as_said(numbers, view) && has_objects(objects);

    Py_XDECREF(objects);
    Py_XDECREF(view);
    Py_XDECREF(numbers);
    return known;
}

/* Borrowed; NULL if numpy is not imported, or only partly.  Read from its namespace, which runs no code. */
static PyTypeObject *
array_type(void)
{
    PyObject *modules = PyImport_GetModuleDict();
    PyObject *module = PyDict_Check(modules) ? plus_dict_item(modules, "numpy") : NULL;
    PyObject *type = module == NULL || !PyModule_Check(module)
                         ? NULL
                         : plus_dict_item(PyModule_GetDict(module), "ndarray");
    bool usable = type != NULL && PyType_Check(type) &&
                  !PyType_HasFeature((PyTypeObject *)type, Py_TPFLAGS_HEAPTYPE) &&
                  ((PyTypeObject *)type)->tp_basicsize >= (Py_ssize_t)sizeof(struct array) &&
                  ((PyTypeObject *)type)->tp_as_buffer != NULL;

    return usable ? (PyTypeObject *)type : NULL;
}

void
plus_numpy_arrays_learn(void)
{
    static PyTypeObject *tried;
    PyTypeObject *type = array_type();

    if (type == NULL || type == tried) {
        return;
    }
    tried = type;
    if (is_known(type)) {
        plus_numpy_array_getbuffer = type->tp_as_buffer->bf_getbuffer;
    }
    PyErr_Clear();
}
