#include "pyframe.h"

#include "frame_variables.h"

#if PY_VERSION_HEX < 0x030C0000

/* The variable's value, a new reference; NULL without an exception if it is unbound. */
static PyObject *
variable(PyFrameObject *frame, PyCodeObject *code, Py_ssize_t index, PyObject *name)
{
    (void)code, (void)name;
    const struct _PyInterpreterFrame *home = plus_pyframe_of(frame);
    /* stacktop is -1 while the frame executes, and a cleared frame has no variables. */
    PyObject *value =
        home->stacktop >= 0 && index >= home->stacktop ? NULL : home->localsplus[index];

    if (value != NULL && PyCell_Check(value)) {
        value = PyCell_GET(value);
    }
    return Py_XNewRef(value);
}

static PyObject *
names_of(PyCodeObject *code)
{
    return Py_NewRef(code->co_localsplusnames);
}

#else

static PyObject *
variable(PyFrameObject *frame, PyCodeObject *code, Py_ssize_t index, PyObject *name)
{
    (void)code, (void)index;
    PyObject *value = PyFrame_GetVar(frame, name);

    if (value == NULL) {
        PyErr_Clear(); /* unbound */
    }
    return value;
}

/* The names of local, cell and free variables in one tuple. */
static PyObject *
names_of(PyCodeObject *code)
{
    PyObject *names = PyCode_GetVarnames(code), *cells = PyCode_GetCellvars(code);
    PyObject *frees = PyCode_GetFreevars(code), *both = NULL, *all = NULL;

    if (names != NULL && cells != NULL && frees != NULL) {
        both = PySequence_Concat(names, cells);
        all = both == NULL ? NULL : PySequence_Concat(both, frees);
    }
    Py_XDECREF(names);
    Py_XDECREF(cells);
    Py_XDECREF(frees);
    Py_XDECREF(both);
    return all;
}

#endif

PyObject *
plus_frame_variables(PyObject *frame)
{
#if PY_VERSION_HEX < 0x030C0000
    if (plus_fact_refusal(PLUS_FACT_FRAMES) != NULL) {
        PyErr_SetString(PyExc_RuntimeError, plus_fact_refusal(PLUS_FACT_FRAMES));
        return NULL;
    }
#endif
    PyCodeObject *code = PyFrame_GetCode((PyFrameObject *)frame);
    PyObject *names = names_of(code), *found = PyDict_New();
    int status = names == NULL || found == NULL ? -1 : 0;

    for (Py_ssize_t i = 0; status == 0 && i < PyTuple_GET_SIZE(names); i++) {
        PyObject *name = PyTuple_GET_ITEM(names, i);
        PyObject *value = variable((PyFrameObject *)frame, code, i, name);
        if (value != NULL) {
            status = PyDict_SetItem(found, name, value);
            Py_DECREF(value);
        }
    }
    Py_DECREF(code);
    Py_XDECREF(names);
    if (status < 0) {
        Py_CLEAR(found);
    }
    return found;
}
