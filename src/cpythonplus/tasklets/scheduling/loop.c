/* The event loop is started when it is first needed. */
#include "loop.h"

#include "../../_base/raise.h"
#include "../core/lists.h"

static void
end_rest(struct plus_scheduler *sched)
{
    if (sched->loop.hub != NULL && sched->loop.rests && plus_is_floating(sched->loop.hub)) {
        plus_queue_insert((struct plus_tasklet *)Py_NewRef(sched->loop.hub));
    }
    sched->loop.rests = false;
}

int
plus_loop_ensure(struct plus_scheduler *sched)
{
    if (sched->loop.hub != NULL) {
        end_rest(sched);
        return 0;
    }
    PyObject *start = plus_import_from("cpythonplus.tasklets.io._hub", "start");
    PyObject *result = start != NULL ? PyObject_CallNoArgs(start) : NULL;

    Py_XDECREF(start);
    Py_XDECREF(result);
    return result != NULL ? 0 : -1;
}

void
plus_loop_ask(struct plus_scheduler *sched, int change)
{
    if (change > 0) {
        sched->loop.asked += (uint32_t)change;
        end_rest(sched);
    }
    else if (sched->loop.asked > 0) { /* in the child of a fork it began again at 0 */
        sched->loop.asked -= (uint32_t)-change;
    }
}
