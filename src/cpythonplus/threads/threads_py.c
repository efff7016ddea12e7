/* The room's part of the extension module: its parts, and its fork hooks. */
#include "binding.h"

#include "../_base/methods.h"
#include "../_base/process/fork.h"
#include "../_base/raise.h"
#include "../_interp/facts/facts.h"
#include "../gil/binding.h"
#include "../gil/scheduler/sched.h"
#include "locks/condition_py.h"
#include "locks/lock_py.h"
#include "maker.h"
#include "waiting/waiting.h"

static void
nothing_to_do(void)
{
}

/* Runs before the interpreter's own re-initialisation. */
static void
after_fork_child(void)
{
    plus_spin_atfork_child();
    plus_waitq_atfork_child();
    plus_barrier_atfork_child();
    plus_waiting_atfork_child();
}

static const struct plus_fork_hooks fork_hooks = {nothing_to_do, nothing_to_do, after_fork_child};

_Atomic bool plus_makers_are_noted;
const PyCodeObject *_Atomic plus_maker_of_rlocks;

static PyObject *
note_lines(PyObject *module, PyObject *code)
{
    if (PyCode_Check(code)) {
        plus_maker_of_rlocks = (PyCodeObject *)code;
    }
    plus_makers_are_noted = plus_fact_refusal(PLUS_FACT_FRAMES) == NULL;
    return PyBool_FromLong(plus_makers_are_noted);
}

/* The maker of an object that has one, or NULL. */
static const struct plus_maker *
maker_of(const struct plus_threads_state *state, PyObject *op)
{
    if (Py_IS_TYPE(op, state->lock) || Py_IS_TYPE(op, state->callable_lock) ||
        PyObject_TypeCheck(op, state->rlock)) {
        return &((plus_lock_object *)op)->maker;
    }
    return PyObject_TypeCheck(op, state->simple_queue) ? plus_simple_queue_maker(op) : NULL;
}

static PyObject *
line_of(PyObject *module, PyObject *op)
{
    const struct plus_maker *maker = maker_of(PyModule_GetState(module), op);

    if (maker == NULL || maker->code == NULL) {
        Py_RETURN_NONE;
    }
    PyCodeObject *code = (PyCodeObject *)maker->code;
    return Py_BuildValue("(OiO)", code->co_filename, plus_frames_line(code, maker->offset),
                         code->co_qualname);
}

static void
note_stall(const struct plus_lock *lock, const struct plus_lock_stall *stall)
{
    /* A lock of this room follows the head of its object. */
    const plus_lock_object *object = (const plus_lock_object *)((const PyObject *)lock - 1);

    if (stall == NULL) {
        plus_stalls_forget_lock(lock);
        return;
    }
    plus_stalls_note_lock(lock,
                          &(struct plus_stall){.hold_ns = stall->hold_ns,
                                               .waited_ns = stall->waited_ns,
                                               .waiters = stall->waiters},
                          stall->held_ns, object->maker.code, object->maker.offset);
}

static PyMethodDef methods[] = {
    PLUS_METHOD(
        "threads_note_lines", note_lines, METH_O, "$module, code, /",
        "Note the line that makes a lock or queue, from now on; return whether it can be.\n\n"
        "code: of threading.RLock, whose caller makes the lock; or None."),
    PLUS_METHOD("threads_line_of", line_of, METH_O, "$module, lock, /",
                "Return file, line and function that made a lock or a SimpleQueue, or None."),
    {NULL, NULL, 0, NULL},
};

int
plus_threads_exec(PyObject *module)
{
    static plus_types_exec *const exec[] = {
        plus_waiting_exec,      plus_present_waits_exec, plus_lock_exec,    plus_condition_exec,
        plus_semaphore_exec,    plus_event_exec,         plus_barrier_exec, plus_queue_exec,
        plus_simple_queue_exec, plus_standard_exec,
    };

    for (size_t i = 0; i < sizeof(exec) / sizeof(exec[0]); i++) {
        if (exec[i](module, PyModule_GetState(module)) < 0) {
            return -1;
        }
    }
    if (PyModule_AddFunctions(module, methods) < 0) {
        return -1;
    }
    plus_lock_stalled = note_stall;
    int rc = plus_fork_register(&fork_hooks);
    if (rc < 0) {
        plus_raise_errno("pthread_atfork", -rc);
    }
    return rc < 0 ? -1 : 0;
}
