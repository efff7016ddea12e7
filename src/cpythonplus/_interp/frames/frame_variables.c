/* Rejected: `frame.f_locals`.  Until 3.12 it is a copy, which stays with the frame and refers to all its variables once
 * more; from 3.14 on the frame keeps each object that is overwritten through it (an operand may borrow from the
 * variable), and so keeps the cycle that is to be broken. */
#include "pyframe.h"

#include "frame_variables.h"

typedef struct _PyInterpreterFrame Frame;

#if PY_VERSION_HEX < 0x030C0000

/* The variable's value, a new reference; NULL without an exception if it is unbound. */
static PyObject *
variable(PyFrameObject *frame, PyCodeObject *code, Py_ssize_t index, PyObject *name)
{
    const Frame *home = plus_pyframe_of(frame);
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

/* Set the variable to None.  Compiled code may rely on it not being deleted. */
static void
set_to_none(Frame *frame, int index)
{
#if PY_VERSION_HEX >= 0x030E0000
    _PyStackRef old = frame->localsplus[index];

    frame->localsplus[index] = PyStackRef_None;
    PyStackRef_CLOSE(old);
#else
    PyObject *old = frame->localsplus[index];

    frame->localsplus[index] = Py_NewRef(Py_None);
    Py_DECREF(old);
#endif
}

/* Replace `op` in the dict that `locals()` left with the frame. */
static void
forget_in_copy(Frame *frame, PyObject *op)
{
#if PY_VERSION_HEX < 0x030D0000
    PyObject *name, *value;
    Py_ssize_t position = 0;

    if (frame->f_locals == NULL || !PyDict_CheckExact(frame->f_locals)) {
        return;
    }
    while (PyDict_Next(frame->f_locals, &position, &name, &value)) {
        /* The dict's keys are names, and replacing a value needs no memory. */
        if (value == op && PyUnicode_CheckExact(name) &&
            PyDict_SetItem(frame->f_locals, name, Py_None) < 0) {
            PyErr_Clear();
        }
    }
#endif
}

int
plus_frame_forget(PyFrameObject *running, PyObject *op)
{
    Frame *frame = plus_pyframe_of(running);
    PyCodeObject *code = PyFrame_GetCode(running);
    int found = 0;

    if (code->co_flags & CO_OPTIMIZED) {
        for (int i = 0; i < code->co_nlocalsplus; i++) {
            PyObject *value = plus_pyframe_variable(frame, i);

            if (value == op) {
                set_to_none(frame, i);
                found++;
            }
            else if (value != NULL && PyCell_Check(value) && PyCell_GET(value) == op) {
                PyCell_Set(value, Py_None);
                found++;
            }
        }
        forget_in_copy(frame, op);
    }
    Py_DECREF(code);
    return found;
}
