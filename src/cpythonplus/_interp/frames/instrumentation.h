/* The monitoring events of code objects, from 3.12 on: the interpreter numbers each change of the tools' requests, and
 * each code object stores the number that it was last brought up to date for.
 *
 * Callers hold the GIL and have proven PLUS_FACT_INSTRUMENTATION.
 */
#pragma once

#include "../facts/facts.h"

#if PY_VERSION_HEX >= 0x030C0000
#define PLUS_INSTRUMENTED 1

#if PY_VERSION_HEX < 0x030D0000
uint64_t
plus_instrumentation_version(PyThreadState *tstate);
#else
/* Changes with each change of a tool's events. */
static inline uint64_t
plus_instrumentation_version(PyThreadState *tstate)
{
    /* The low byte is requests to the evaluation loop, which other threads may set at any time. */
    return __atomic_load_n(&PLUS_AT(PLUS_FACT_INSTRUMENTATION, tstate)->eval_breaker,
                           __ATOMIC_RELAXED) &
           ~(uintptr_t)0xff;
}
#endif

/* Call sys.monitoring.restart_events(): the interpreter updates the frames of all threads, and the number changes.  0,
 * or -1 with an exception. */
int
plus_instrumentation_restart(void);

/* True if a tool has global events, including sys.setprofile() and sys.settrace() of any thread; also true if that
 * cannot be found out. */
bool
plus_instrumentation_is_asked(void);

/* The number that a code object was last brought up to date for. */
static inline uint64_t
plus_instrumentation_version_of(const PyCodeObject *code)
{
    return PLUS_AT(PLUS_FACT_INSTRUMENTATION, code)->_co_instrumentation_version;
}

/* False for code of the interpreter itself: it has no traceable instruction, and enabling events for it fails. */
static inline bool
plus_instrumentation_is_possible(const PyCodeObject *code)
{
    return PLUS_AT(PLUS_FACT_INSTRUMENTATION, code)->_co_firsttraceable < Py_SIZE(code);
}

/* From 3.15 on the interpreter reads a function's monitoring data when an exception leaves the function.  RESUME makes
 * that data as soon as a tool is active.  Code whose frames go on without a RESUME gets empty data in advance.  False
 * with MemoryError. */
bool
plus_instrumentation_give_data(PyCodeObject *code);

/* True if instructions of this code are instrumented (a call then ends differently), whether or not a tool still wants
 * events. */
bool
plus_instrumentation_is_active(const PyCodeObject *code);

#else
#define PLUS_INSTRUMENTED 0
#define plus_instrumentation_is_active(code) false
#define plus_instrumentation_give_data(code) true
#endif

/* True if code must not be instrumented now: from 3.14 on the interpreter rewrites code with the lock of the list of
 * threads held, and drops a list meanwhile.  That runs deferred deallocations, including finalisers; a finaliser that
 * switches, or calls sys.settrace(), would wait for that lock for ever. */
static inline bool
plus_instrumentation_must_wait(const PyThreadState *tstate)
{
#if PY_VERSION_HEX >= 0x030E0000
    return PLUS_AT(PLUS_FACT_INSTRUMENTATION, tstate)->delete_later != NULL;
#else
    return false;
#endif
}
