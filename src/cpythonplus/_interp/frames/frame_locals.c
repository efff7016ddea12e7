/* The layout of a frame's variables.
 *
 * Rejected: `frame.f_locals`.  Until 3.12 it is a copy, which stays with the frame and refers to all its variables once
 * more; from 3.14 on the frame keeps each object that is overwritten through it (an operand may borrow from the
 * variable), and so keeps the cycle that is to be broken. */
#include "pyframe.h"

#include "frame_locals.h"

typedef struct _PyInterpreterFrame Frame;

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
