/* The callable of a loaded tasklet.  Its frames are checked when it is made, so that a pickle that does not fit its
 * code fails at once and as a whole.  They are built when the tasklet begins, on its own C stack; until then they are
 * a tuple, so a hundred thousand loaded tasklets have no stacks.  From then on the interpreter owns them, and the
 * snapshot is empty. */
#include "snapshot.h"

#include "../../_interp/saved_frames/frame_build.h"
#include "../../_interp/saved_frames/frame_restore.h"
#include "../core/bomb.h"
#include "../core/task.h"
#include "../tracing/instrument.h"
#include "../tracing/interrupts.h"

struct snapshot {
    PyObject_HEAD PyObject *function; /* of the outermost frame; reports name it */
    PyObject *frames, *handled;       /* frames NULL: gone on; handled NULL: nothing is handled */
    PyObject *operands, *called;      /* or NULL; see plus_snapshot_keep() */
};

PyObject *
plus_snapshot_make(PyObject *frames, PyObject *handled)
{
    PyObject *adopted = plus_frames_adopt(frames);
    struct snapshot *self =
        adopted == NULL ? NULL : PyObject_GC_New(struct snapshot, &plus_snapshot_type);

    if (self == NULL) {
        if (adopted != NULL) {
            plus_frames_abandon(adopted);
            Py_DECREF(adopted);
        }
        return NULL;
    }
    self->function = Py_NewRef(plus_frames_captured(adopted, 0).function);
    self->frames = adopted;
    self->handled = Py_XNewRef(handled);
    self->operands = self->called = NULL;
    PyObject_GC_Track(self);
    return (PyObject *)self;
}

void
plus_snapshot_keep(PyObject *op, PyObject *operands, PyObject *called)
{
    struct snapshot *self = (struct snapshot *)op;

    self->operands = operands;
    self->called = called;
}

PyObject *
plus_snapshot_function(PyObject *op)
{
    return ((struct snapshot *)op)->function;
}

PyObject *
plus_snapshot_frames(PyObject *op)
{
    return ((struct snapshot *)op)->frames;
}

PyObject *
plus_snapshot_handled(PyObject *op)
{
    return ((struct snapshot *)op)->handled;
}

struct call {
    PyObject *value; /* a reference, until it is passed on */
    struct snapshot *snapshot;
    PyObject *(*receive)(struct plus_tasklet *, PyObject *);
    struct plus_tasklet *task;
};

/* Runs as the call of the innermost frame. */
static PyObject *
give(void *arg)
{
    struct call *call = arg;
    PyObject *given = call->value;
    struct plus_scheduler *sched = plus_scheduler_own;

    call->value = NULL;
    given = call->receive(call->task, given);
    Py_CLEAR(call->snapshot->operands); /* the collector sees them until here */
    if (sched->watch.counting) {
        plus_interrupts_extend_running(sched);
    }
    plus_instrument_new_frames();
    return plus_is_bomb(given) ? plus_bomb_explode(given) : given;
}

PyObject *
plus_snapshot_run(PyObject *op, PyObject *value,
                  PyObject *(*receive)(struct plus_tasklet *, PyObject *),
                  struct plus_tasklet *task)
{
    struct snapshot *self = (struct snapshot *)op;
    PyObject *frames = self->frames, *handled = self->handled;

    struct call call = {value, self, receive, task};

    self->frames = self->handled = NULL;
    if (frames == NULL) {
        Py_DECREF(value);
        PyErr_SetString(PyExc_RuntimeError, "the frames of this tasklet have gone on already");
        return NULL;
    }
    size_t stack_left = (size_t)((char *)__builtin_frame_address(0) - task->stack->low);
    PyObject *result = plus_frames_go_on(frames, handled, give, &call, stack_left);

    Py_XDECREF(call.value);
    Py_CLEAR(self->operands);
    return result;
}

static int
snapshot_traverse(PyObject *op, visitproc visit, void *arg)
{
    struct snapshot *self = (struct snapshot *)op;

    Py_VISIT(self->function);
    Py_VISIT(self->frames);
    Py_VISIT(self->handled);
    Py_VISIT(self->operands);
    Py_VISIT(self->called);
    return 0;
}

static int
snapshot_clear(PyObject *op)
{
    struct snapshot *self = (struct snapshot *)op;
    PyObject *frames = self->frames;

    self->frames = NULL;
    if (frames != NULL) {
        plus_frames_abandon(frames);
        Py_DECREF(frames);
    }
    Py_CLEAR(self->handled);
    Py_CLEAR(self->operands);
    Py_CLEAR(self->called);
    return 0;
}

static void
snapshot_dealloc(PyObject *op)
{
    PyObject_GC_UnTrack(op);
    (void)snapshot_clear(op);
    Py_DECREF(((struct snapshot *)op)
                  ->function); /* not in snapshot_clear(): a report may read it until now */
    PyObject_GC_Del(op);
}

/* Makes callable() true; only plus_snapshot_run() of a tasklet runs the frames. */
static PyObject *
snapshot_call(PyObject *op, PyObject *args, PyObject *kwargs)
{
    (void)op, (void)args, (void)kwargs;
    PyErr_SetString(PyExc_TypeError, "only a tasklet goes on with its frames");
    return NULL;
}

PyTypeObject plus_snapshot_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "cpythonplus.tasklets._Snapshot",
    .tp_basicsize = sizeof(struct snapshot),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = PyDoc_STR("The frames of a tasklet that was loaded and has not gone on yet."),
    .tp_dealloc = snapshot_dealloc,
    .tp_traverse = snapshot_traverse,
    .tp_clear = snapshot_clear,
    .tp_call = snapshot_call,
};
