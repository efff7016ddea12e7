/* Which monitoring events code has been given, from 3.12 on: the interpreter numbers the changes of what tools ask for,
 * and each code object knows the number it was last brought up to date for.
 *
 * All with the GIL held; for whom PLUS_FACT_INSTRUMENTATION holds.
 */
#ifndef PLUS_INTERP_INSTRUMENTATION_H
#define PLUS_INTERP_INSTRUMENTATION_H

#include "../facts/facts.h"

#if PY_VERSION_HEX >= 0x030C0000
#define PLUS_INSTRUMENTED 1

#if PY_VERSION_HEX < 0x030D0000
uint64_t
plus_instrumentation_version(PyThreadState *tstate);
#else
/* Changes whenever a tool asks for other events. */
static inline uint64_t
plus_instrumentation_version(PyThreadState *tstate)
{
    /* Its low byte are requests to the evaluation loop, which other threads may set at any time. */
    return __atomic_load_n(&PLUS_AT(PLUS_FACT_INSTRUMENTATION, tstate)->eval_breaker,
                           __ATOMIC_RELAXED) &
           ~(uintptr_t)0xff;
}
#endif

/* sys.monitoring.restart_events(): has the interpreter look at the frames of all threads, and is a change itself.  0, or
 * -1 with an exception. */
int
plus_instrumentation_restart(void);

/* Whether a tool asks for events everywhere, also sys.setprofile() and sys.settrace() of any thread; true where that cannot
 * be told. */
bool
plus_instrumentation_is_asked(void);

/* The number of a code object, when it was last brought up to date. */
static inline uint64_t
plus_instrumentation_version_of(const PyCodeObject *code)
{
    return PLUS_AT(PLUS_FACT_INSTRUMENTATION, code)->_co_instrumentation_version;
}

/* A piece of the interpreter has no instruction that could report anything, and refuses to be asked for it. */
static inline bool
plus_instrumentation_is_possible(const PyCodeObject *code)
{
    return PLUS_AT(PLUS_FACT_INSTRUMENTATION, code)->_co_firsttraceable < Py_SIZE(code);
}

/* From 3.15 on the interpreter asks a function's own data whom to tell of an exception that leaves it.  A RESUME makes them
 * as soon as somebody traces.  Code whose frames go on without one has them from the beginning, and they name nobody.
 * False with MemoryError. */
bool
plus_instrumentation_give_data(PyCodeObject *code);

/* Instructions of this code report events, as how a call ends, whoever asks for them now. */
bool
plus_instrumentation_is_active(const PyCodeObject *code);

#else
#define PLUS_INSTRUMENTED 0
#define plus_instrumentation_is_active(code) false
#define plus_instrumentation_give_data(code) true
#endif

/* Not now: from 3.14 on the interpreter rewrites code with the lock of the list of threads held, and lets a list go
 * meanwhile.  That runs whatever deallocations were put off, finalisers among them; one that switches, or calls
 * sys.settrace(), waits for that lock for ever. */
static inline bool
plus_instrumentation_must_wait(const PyThreadState *tstate)
{
#if PY_VERSION_HEX >= 0x030E0000
    return PLUS_AT(PLUS_FACT_INSTRUMENTATION, tstate)->delete_later != NULL;
#else
    (void)tstate;
    return false;
#endif
}

#endif
