/* The tasklets that wait for a lock, of all threads at one moment: _deadlocks.py looks for cycles among them. */
#include "locks.h"

#include "../../_base/process/clock.h"
#include "../../_base/rows.h"

static int
add(struct plus_tasklet *task, void *list)
{
    const struct plus_task_lock *lock = (const struct plus_task_lock *)task->channel;

    if (!task->blocked || lock->queue.waits != plus_acquiring || task->timer.place != 0) {
        return 0;
    }
    uint64_t now_ns = plus_now_ns();
    uint64_t waited_ns = now_ns > task->parked_ns ? now_ns - task->parked_ns : 0;

    return plus_append_new(list, Py_BuildValue("(OOKK)", task, lock,
                                               (unsigned long long)(uintptr_t)lock->holder,
                                               (unsigned long long)waited_ns));
}

static PyObject *
take(void)
{
    PyInterpreterState *interpreter = PyInterpreterState_Get();
    PyObject *list = PyList_New(0);

    for (PyThreadState *each = PyInterpreterState_ThreadHead(interpreter);
         list != NULL && each != NULL; each = PyThreadState_Next(each)) {
        struct plus_scheduler *sched = plus_scheduler_of(each);

        if (sched != NULL && ((sched->main != NULL && add(sched->main, list) < 0) ||
                              plus_scheduler_each(sched, add, list) < 0)) {
            Py_CLEAR(list);
        }
    }
    return list;
}

PyObject *
plus_task_lock_waits(PyObject *module, PyObject *ignored)
{
    /* Up to 3.11 making an object may start a collection, and that runs finalizers. */
    int collects = PyGC_Disable();
    PyObject *list = take();

    if (collects) {
        PyGC_Enable();
    }
    return list;
}
