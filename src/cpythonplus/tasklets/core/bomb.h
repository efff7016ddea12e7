/* Bombs: exceptions on their way into a tasklet.  Called with the GIL held. */
#pragma once

#include "task.h"

extern PyTypeObject plus_bomb_type;

#define plus_is_bomb(op) Py_IS_TYPE(op, &plus_bomb_type)

/* Makes the spare bomb of plus_bomb_from_error().  Returns -1 with MemoryError. */
int
plus_bomb_prepare(void);
/* Makes a bomb of the current exception, which is cleared.  Never NULL: without memory it is a bomb with
 * MemoryError. */
PyObject *
plus_bomb_from_error(void);
/* Makes a bomb of the arguments of `raise`: class or instance, value, traceback (NULL or None: not given).  Returns
 * NULL with an exception. */
PyObject *
plus_bomb_from_triple(PyObject *exc, PyObject *value, PyObject *traceback);
/* Makes a bomb of args: a class and the arguments to call it with. */
PyObject *
plus_bomb_from_class(PyObject *args, const char *who);
/* Takes the bomb; returns NULL with its exception set. */
PyObject *
plus_bomb_explode(PyObject *bomb);

/* Takes a value and returns it; if it is a bomb, returns NULL with its exception set. */
static inline PyObject *
plus_value_or_raise(PyObject *value)
{
    return plus_is_bomb(value) ? plus_bomb_explode(value) : value;
}

/* Raises the exception that the running tasklet is to get before it switches or waits: another thread threw it while
 * the tasklet ran, or a timer while it was runnable and may have been given something.  True: an exception is set. */
static inline bool
plus_raise_due(struct plus_tasklet *task)
{
    if (plus_is_bomb(task->tempval)) {
        (void)plus_bomb_explode(plus_claim_value(task));
        return true;
    }
    if (task->due != NULL) {
        PyObject *due = task->due;

        task->due = NULL;
        PyErr_SetObject((PyObject *)Py_TYPE(due), due);
        Py_DECREF(due);
        return true;
    }
    return false;
}
