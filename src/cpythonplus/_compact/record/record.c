/* The deallocation of deeply nested records.
 *
 * The interpreter's own containers put deeply nested objects into a list in the thread's state, linked through the
 * collector's headers of the dead, or from 3.14 on through free words in them.  Records have no header, so they have a
 * list of their own:
 *
 *     nesting < NESTED    the fields are released at once, and dying records among them one level further in
 *     deeper              the first record releases its fields, then those of all waiting records
 *                         a record that dies meanwhile, inside the first one, waits
 *
 * So the innermost frame empties the list, not the outermost one: tasklets and greenlets may leave a frame for ever
 * while a finaliser runs in it, and then the level stays too high; records are still released, by the list.
 *
 * The list is the thread's, and its head is no local variable of the first frame, since a stack that is switched away
 * may be copied elsewhere.  The list is freed when it is empty, so a thread that ends leaves nothing behind.
 *
 * Rejected: linking the dead through their own words.  Debug builds read the reference count, and all other words hold
 * references that must be released first. */
#include "record.h"

#include "../../_base/memory/object_stack.h"
#include "../../_base/process/identity.h"

#define NESTED 50

static _Thread_local unsigned nesting PLUS_FAST_TLS;

/* The waiting records, and their interpreter; NULL if no frame is there to release them. */
static _Thread_local struct waiting {
    struct plus_object_stack dead;
    PyInterpreterState *interpreter;
} waiting;

void *
plus_record_raise_unsealed(PyTypeObject *type)
{
    PyErr_Format(PyExc_TypeError,
                 "%s has no instances: it is only a base of records, or still being made",
                 type->tp_name);
    return NULL;
}

PyObject *
plus_record_new(struct plus_record_class *class)
{
    PyTypeObject *type = (PyTypeObject *)class;
    PyObject *op = PyObject_Malloc((size_t)type->tp_basicsize);

    if (op == NULL) {
        return PyErr_NoMemory();
    }
    memset(op, 0, (size_t)type->tp_basicsize);
    return PyObject_Init(op, type);
}

/* Nothing refers to the object and no walk meets it, so the fields need not be cleared. */
static void
release(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);

    for (PyObject **field = plus_record_fields(op); field < plus_record_end(op); field++) {
        Py_XDECREF(*field);
    }
    type->tp_free(op);
    Py_DECREF(type);
}

/* False if the record belongs to another interpreter, or there is no memory for the list: then the C stack is used. */
static bool
wait_for_release(PyObject *op)
{
    return waiting.interpreter == PyInterpreterState_Get() &&
           plus_object_stack_push(&waiting.dead, op) == 0;
}

void
plus_record_dealloc(PyObject *op)
{
    if (Py_TYPE(op)->tp_finalize != NULL && PyObject_CallFinalizerFromDealloc(op) < 0) {
        return; /* resurrected */
    }
    if (nesting < NESTED) {
        nesting++;
        release(op);
        nesting--;
    }
    else if (!wait_for_release(op)) {
        /* Records of another interpreter that runs inside this one's finaliser get a list of their own. */
        struct waiting outer = waiting;

        waiting = (struct waiting){.interpreter = PyInterpreterState_Get()};
        release(op);
        while (waiting.dead.depth > 0) {
            release(waiting.dead.items[--waiting.dead.depth]);
        }
        free(waiting.dead.items);
        waiting = outer;
    }
}

int
plus_record_traverse(PyObject *op, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(op));
    for (PyObject **field = plus_record_fields(op); field < plus_record_end(op); field++) {
        Py_VISIT(*field);
    }
    return 0;
}
