/* 3.12 keeps the number in the private half of the interpreter's state. */
#define Py_BUILD_CORE 1
#include "instrumentation.h"

#include "probe_call.h"
#include "probes.h"

#if PLUS_INSTRUMENTED
#if PY_VERSION_HEX < 0x030D0000
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

    /* A function that runs after the change is brought up to date at its first instruction. */
    fits = fits && plus_probe_call(note_numbers, &numbers) == 0;
    fits = fits && after != before && numbers.of_code == after && numbers.can_report;
    PyErr_Clear();
    return fits ? NULL : "changes of monitoring events are not numbered as expected";
}

#endif
