/* What has been asked, and what came of it.
 *
 *     not asked -> [ground] -> refused          another minor version, another build, no GIL: no probe runs
 *                           -> absent           the version has no such structure: nothing that is read here
 *                           -> probe -> proven  for the life of the process
 *                                    -> refused likewise
 *
 * A refusal stays: a structure that was not found once is not looked for again, and who asks at each call (a measuring
 * of types, a look at a class) gets the same answer cheaply.  One fact is asked anew in each interpreter, since its
 * readers keep addresses of that interpreter; its probe remembers where it was asked last.
 *
 * Signal handlers and trace functions run in the Python of a probe.  What one raises there says nothing about the
 * structure: the probe is made again, and the exception raised behind it.  Without memory or room on the stack, or where
 * a handler raises each time, nothing is noted, and the next question is the first one again.
 *
 * A probe asks first for the facts that its own rests on, and none asks in a circle: arenas asks for pools; operands,
 * thread-state and frame-tracing for frames; frame-building for these and instrumentation; inline-values for dict-keys; object-sizes for these two.
 * Probes run Python, and that of arenas lets the GIL go: another thread that asks meanwhile runs the probe as well, on
 * objects of its own, and both write the same answer.  There is no lock: whoever waited for one would have to let the
 * GIL go.
 *
 * fork: nothing to do, a child has what was proven.  What proofs do not hold against is a program that exchanges an
 * allocator later: who writes to pools looks again (plus_pools_serve).
 *
 * Rejected: to prove everything when the package is loaded.  It takes a millisecond, but proofs are not without
 * effects: one restarts the monitoring events of all tools, another leaves an immortal object behind.  And a table in
 * this file: it has to know all probes, each of which knows this file. */
#include "facts.h"

#include "../../_base/raise.h"
#include "probe_call.h"

#define TRIES 4 /* signals may come as quickly as they are handled */

static const char put_off[] = "the proof had no memory, or was interrupted";

static const struct plus_fact_entry *entries;

static struct {
    enum plus_fact_state state;
    const char *refusal;
    bool probing;
} asked[PLUS_FACTS];

#ifdef PLUS_LIES
ptrdiff_t plus_lies[PLUS_FACTS];
unsigned plus_pretended_version;

ptrdiff_t
plus_lie_of(enum plus_fact fact)
{
    if (asked[fact].state != PLUS_FACT_PROVEN && !asked[fact].probing) {
        Py_FatalError(entries[fact].name); /* is read, and not proven */
    }
    return plus_lies[fact];
}
#endif

static unsigned
version(void)
{
#ifdef PLUS_LIES
    if (plus_pretended_version != 0) {
        return plus_pretended_version;
    }
#endif
    return (unsigned)(Py_Version >> 16);
}

/* Why nothing at all is known here, or NULL. */
static const char *
ground(void)
{
    static char text[96];

#ifdef Py_GIL_DISABLED
    return PLUS_FREE_THREADED;
#endif
    if (version() < PLUS_OLDEST_KNOWN || version() > PLUS_NEWEST_KNOWN) {
        snprintf(text, sizeof text, "nobody has tested this with the structures of Python %u.%u",
                 version() >> 8, version() & 0xff);
        return text;
    }
    if (Py_Version >> 16 != PY_VERSION_HEX >> 16) {
        return "this extension was compiled for another version of Python";
    }
    return NULL;
}

void
plus_facts_register(const struct plus_fact_entry *table)
{
    entries = table;
}

const struct plus_fact_entry *
plus_fact_about(enum plus_fact fact)
{
    return &entries[fact];
}

/* Want of memory, or of room on the stack. */
static bool
is_want(PyObject *error)
{
    return PyErr_GivenExceptionMatches(error, PyExc_MemoryError) ||
           PyErr_GivenExceptionMatches(error, PyExc_RecursionError);
}

/* Whether a reader has raised it in the probe's own function: ValueError, as it does for what it does not understand.  What
 * a signal handler or a trace function of the program raises has a frame of theirs behind the probe's. */
static bool
is_of_probe(PyObject *error)
{
    PyObject *traceback = PyException_GetTraceback(error);
    const PyTracebackObject *last = (const PyTracebackObject *)traceback;
    bool found = false;

    while (last != NULL && last->tb_next != NULL) {
        last = last->tb_next;
    }
    if (last != NULL && Py_IS_TYPE(error, (PyTypeObject *)PyExc_ValueError)) {
        PyCodeObject *code = PyFrame_GetCode(last->tb_frame);
        found = PyUnicode_CompareWithASCIIString(code->co_filename, PLUS_PROBE_FILE) == 0;
        Py_DECREF(code);
    }
    Py_XDECREF(traceback);
    return found;
}

const char *
plus_fact_prove(const char *(*probe)(void), bool *is_final)
{
    PyObject *first = NULL, *error = NULL;
    const char *refusal = NULL;

    for (int i = 0; i < TRIES && (i == 0 || error != NULL); i++) {
        Py_CLEAR(error);
        refusal = probe();
        error = PyErr_Occurred() != NULL ? plus_compat_take_exception() : NULL;
        if (error != NULL && is_want(error)) {
            break;
        }
        if (first == NULL) {
            first = Py_XNewRef(error);
        }
    }
    bool is_own = refusal != NULL && error != NULL && !is_want(error) &&
                  PyErr_GivenExceptionMatches(error, PyExc_Exception); /* it comes each time */

    /* Another proof that this one rests on may have been put off. */
    *is_final = refusal == NULL || is_own || (error == NULL && refusal != put_off);
    if (is_own && PyErr_GivenExceptionMatches(first, PyExc_Exception)) {
        Py_CLEAR(first);
    }
    /* Without memory a reader does not understand what it reads. */
    if (first != NULL && error != NULL && is_want(error) && is_of_probe(first)) {
        Py_CLEAR(first);
    }
    Py_XDECREF(error);
    if (first != NULL) {
        plus_raise_soon_or_print(first);
    }
    return *is_final ? refusal : put_off;
}

const char *
plus_fact_refusal(enum plus_fact fact)
{
    const struct plus_fact_entry *about = &entries[fact];

    if (asked[fact].state == PLUS_FACT_NOT_ASKED || about->each_interpreter) {
        const char *refusal = ground();

        if (refusal == NULL && (version() < about->from || version() > about->until)) {
            asked[fact].state = PLUS_FACT_ABSENT;
            return NULL;
        }
        if (refusal == NULL) {
            bool is_final;

            asked[fact].probing = true;
            refusal = plus_fact_prove(about->probe, &is_final);
            asked[fact].probing = false;
            if (!is_final) {
                return refusal;
            }
        }
        asked[fact].refusal = refusal;
        asked[fact].state = asked[fact].refusal != NULL ? PLUS_FACT_REFUSED : PLUS_FACT_PROVEN;
    }
    return asked[fact].refusal;
}

const char *
plus_facts_refusal(const enum plus_fact *facts, size_t count)
{
    const char *refusal = NULL;

    for (size_t i = 0; i < count && refusal == NULL; i++) {
        refusal = plus_fact_refusal(facts[i]);
    }
    return refusal;
}

enum plus_fact_state
plus_fact_state(enum plus_fact fact, const char **refusal)
{
    *refusal = asked[fact].refusal;
    return asked[fact].state;
}
