#include "finalizing.h"

#include <stdlib.h>
#include <string.h>

#include "../../_base/memory/copy_memory.h"
#include "../../_base/raise.h"
#include "../../_interp/saved_frames/frame_build.h"
#include "../scheduling/switching.h"
#include "tasklet.h"

enum { MAX_KILLS = 100 };

/* Strong references: tasklets that were finalized, and wait in a `finally`, until the collection is over. */
static struct {
    PyObject **items;
    size_t count, room;
} kept;

static PyObject *callbacks;    /* gc.callbacks of the main interpreter */
static PyObject *let_kept_go_; /* let_kept_go() as a Python object */

static bool
is_unfinished(const struct plus_tasklet *task)
{
    return task->alive && task->started && !task->is_main;
}

/* ---- kept until the end of a collection --------------------------------------------------------- */

/* The callback of gc.callbacks: (phase, information). */
static PyObject *
let_kept_go(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t count)
{
    if (count > 0 && PyUnicode_Check(args[0]) &&
        PyUnicode_CompareWithASCIIString(args[0], "stop") == 0) {
        PyObject **items = kept.items;
        size_t n = kept.count;

        memset(&kept, 0, sizeof(kept));
        for (size_t i = 0; i < n; i++) {
            /* A derived class's __del__ is called once, as Python promises. */
            if (Py_TYPE(items[i])->tp_finalize == plus_tasklet_finalize) {
                plus_set_finalised(items[i], false);
            }
            Py_DECREF(items[i]);
        }
        free(items);
    }
    Py_RETURN_NONE;
}

static PyMethodDef let_kept_go_def = {"tasklets", (PyCFunction)(void (*)(void))let_kept_go,
                                      METH_FASTCALL, NULL};

static bool
is_called_after_collections(void)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(callbacks); i++) {
        if (PyList_GET_ITEM(callbacks, i) == let_kept_go_) {
            return true;
        }
    }
    return PyList_Append(callbacks, let_kept_go_) == 0;
}

/* Without memory the tasklet is not kept: the collector clears the objects on its stack, and it is abandoned. */
static void
keep(PyObject *op)
{
    PyObject **items = plus_room_for_one(kept.items, kept.count, &kept.room, 8, sizeof *items);

    if (items == NULL) {
        return;
    }
    kept.items = items;
    if (PyInterpreterState_Get() == PyInterpreterState_Main() && is_called_after_collections()) {
        kept.items[kept.count++] = Py_NewRef(op);
    }
    PyErr_Clear();
}

/* ---- what the interpreter calls ----------------------------------------------------------------- */

/* Whether the last reference is gone, and plus_tasklet_outlives() decides: the interpreter has made one.  A derived
 * class's deallocation calls the finalizer before that. */
static bool
is_freed(PyObject *op)
{
    return Py_REFCNT(op) == 1 && !PyType_HasFeature(Py_TYPE(op), Py_TPFLAGS_HEAPTYPE);
}

void
plus_tasklet_finalize(PyObject *op)
{
    struct plus_tasklet *task = (struct plus_tasklet *)op;

    if (!plus_has_begun(task) || task->is_main || task->sched->tstate == NULL ||
        task->sched->running == task) {
        return;
    }
    bool here = task->sched == plus_scheduler_own, freed = is_freed(op);

    struct plus_raised raised = plus_raised_take();
    struct plus_tasklet *killer = here ? task->sched->running : task;
    bool uncalled = killer->uncalled;

    killer->uncalled = true;
    bool later = !here || task->sched->in_callback || task->sched->turn.trap > 0;
    PyObject *result = plus_tasklet_kill(task, later);

    killer->uncalled = uncalled;

    if (result == NULL && plus_compat_is_finalizing()) {
        PyErr_Clear(); /* switching is refused by now */
    }
    else if (result == NULL) {
        PyErr_WriteUnraisable(op);
    }
    Py_XDECREF(result);
    if (!freed && is_unfinished(task) && !plus_compat_is_finalizing()) {
        keep(op);
    }
    plus_raised_put(raised);
}

bool
plus_tasklet_outlives(PyObject *op)
{
    struct plus_tasklet *task = (struct plus_tasklet *)op;

    /* Once finalized by the collector, it is not killed again: objects on its stack may have been cleared. */
    for (int kills = 0; kills < MAX_KILLS && plus_has_begun(task) && !PyObject_GC_IsFinalized(op);
         kills++) {
        int freed = PyObject_CallFinalizerFromDealloc(op);

        if (is_unfinished(task)) {
            plus_set_finalised(op, false);
        }
        if (freed < 0) {
            return true;
        }
    }
    if (is_unfinished(task)) {
        /* Its thread is gone, or it ignores every kill: its stack, and the objects on it, are never freed. */
        Py_SET_REFCNT(op, 1);
        task->abandoned = true;
        return true;
    }
    return false;
}

int
plus_finalizing_prepare(void)
{
    PyObject *gc = callbacks == NULL ? PyImport_ImportModule("gc") : NULL;

    if (gc != NULL) {
        callbacks = PyObject_GetAttrString(gc, "callbacks");
        Py_DECREF(gc);
    }
    if (let_kept_go_ == NULL) {
        let_kept_go_ = PyCFunction_New(&let_kept_go_def, NULL);
    }
    return callbacks != NULL && PyList_Check(callbacks) && let_kept_go_ != NULL ? 0 : -1;
}
