/* The version number of the monitoring events.
 *
 *     a tool asks for events           the interpreter's number changes, and the code in the frames of all threads is
 *                                      brought up to date
 *     a function begins, a generator   its code's number is compared with the interpreter's: if it is another one, the
 *     goes on                          code is brought up to date
 *
 * A parked tasklet's frames are in no thread's chain.  So its code may have an older number, and reports nothing as
 * long as it is in a loop; tasklets/tracing/instrument.c handles this.  This file only reads the two numbers:
 *
 *     3.12             in the interpreter's state, a field of its private half
 *     3.13 and later   in each thread's eval_breaker, above a low byte with requests to the evaluation loop
 *
 * The probe makes a change by sys.monitoring.restart_events(), whose only effect is that events come again after a
 * callback has switched them off by DISABLE; code that runs then must have the new number. */
#define Py_BUILD_CORE 1
#include "instrumentation.h"

#include "../facts/probe_call.h"
#include "../facts/probes.h"

#if PLUS_INSTRUMENTED
#if PY_VERSION_HEX >= 0x030E0000
#include "internal/pycore_instruments.h"
#elif PY_VERSION_HEX < 0x030D0000
#include "internal/pycore_interp.h"

uint64_t
plus_instrumentation_version(PyThreadState *tstate)
{
    return PLUS_AT(PLUS_FACT_INSTRUMENTATION, PyThreadState_GetInterpreter(tstate))
        ->monitoring_version;
}
#endif

int
plus_instrumentation_restart(void)
{
    PyObject *monitoring = PySys_GetObject("monitoring"); /* borrowed */
    PyObject *result =
        monitoring == NULL ? NULL : PyObject_CallMethod(monitoring, "restart_events", NULL);

    Py_XDECREF(result);
    return result != NULL ? 0 : -1;
}

bool
plus_instrumentation_is_asked(void)
{
    PyObject *monitoring = PySys_GetObject("monitoring"); /* borrowed */
    /* get_events() does not include sys.setprofile() and sys.settrace(), which are two tools of their own. */
    PyObject *events =
        monitoring == NULL ? NULL : PyObject_CallMethod(monitoring, "_all_events", NULL);
    bool is = events == NULL || PyObject_IsTrue(events) != 0;

    Py_XDECREF(events);
    PyErr_Clear();
    return is;
}

bool
plus_instrumentation_give_data(PyCodeObject *code)
{
    PyCodeObject *there = PLUS_AT(PLUS_FACT_INSTRUMENTATION, code);

    if (there->_co_monitoring == NULL) {
        there->_co_monitoring =
            PyMem_Calloc(1, sizeof *there->_co_monitoring); /* the code object frees it */
    }
    return there->_co_monitoring != NULL || PyErr_NoMemory() != NULL;
}

static bool
has_any(const _Py_LocalMonitors *monitors)
{
    const unsigned char *bytes = (const unsigned char *)monitors;
    bool any = false;

    for (size_t i = 0; i < sizeof *monitors; i++) {
        any |= bytes[i] != 0;
    }
    return any;
}

bool
plus_instrumentation_is_active(const PyCodeObject *code)
{
    const _PyCoMonitoringData *data = PLUS_AT(PLUS_FACT_INSTRUMENTATION, code)->_co_monitoring;

    return data != NULL && (has_any(&data->local_monitors) || has_any(&data->active_monitors));
}

struct numbers {
    uint64_t of_code;
    bool can_report;
};

static void
note_numbers(const struct plus_probe_call *call, void *arg)
{
    struct numbers *numbers = arg;

    numbers->of_code = plus_instrumentation_version_of(call->code);
    numbers->can_report = plus_instrumentation_is_possible(call->code) &&
                          PLUS_AT(PLUS_FACT_INSTRUMENTATION, call->code)->_co_firsttraceable >= 0;
}

const char *
plus_probe_instrumentation(void)
{
    PyThreadState *tstate = PyThreadState_Get();
    struct numbers numbers = {0};
    uint64_t before = plus_instrumentation_version(tstate);
    bool fits = plus_instrumentation_restart() == 0;
    uint64_t after = plus_instrumentation_version(tstate);

    /* A function that is called after the change is brought up to date at its first instruction. */
    fits = fits && plus_probe_call(note_numbers, &numbers) == 0;
    fits = fits && after != before && numbers.of_code == after && numbers.can_report;
    return fits ? NULL : "changes of monitoring events are not numbered as expected";
}

#endif
