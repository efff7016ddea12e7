/* The state of each fact.
 *
 *     not asked -> [ground] -> refused          another minor version, another build, no GIL: no probe runs
 *                           -> absent           the version has no such structure, and no reader reads it
 *                           -> probe -> proven  for the life of the process
 *                                    -> refused likewise
 *
 * A refusal is final: the probe does not run again, and code that asks at each call (measuring a type, reading a class)
 * gets the same answer cheaply.  One fact is asked anew in each interpreter, since its readers keep addresses of that
 * interpreter; its probe remembers where it was asked last.
 *
 * Signal handlers and trace functions run in the Python of a probe.  Their exceptions say nothing about the structure:
 * the probe is run again, and the exception raised after it.  If memory or stack are short, or a handler raises each
 * time, no result is stored, and the next question starts again.
 *
 * A probe first asks for the facts that it relies on, without a circle: arenas asks for pools; operands, thread-state
 * and frame-tracing for frames; frame-building for these and instrumentation; inline-values for dict-keys; object-sizes
 * for these two.  Probes run Python code, and that of arenas gives up the GIL: another thread that asks meanwhile runs
 * the probe as well, on objects of its own, and both write the same answer.  There is no lock: a thread waiting for it
 * would have to give up the GIL.
 *
 * fork: nothing to do, a child inherits the results.  A program may exchange an allocator after the proof: code that
 * writes to pools checks again (plus_pools_serve).
 *
 * Rejected: proving everything when the package is loaded.  It takes a millisecond, but proofs are not without effects:
 * one restarts the monitoring events of all tools, another leaves an immortal object behind.  Also rejected: the table
 * of facts in this file, which would refer to all probes, while each probe refers to this file. */
#include "facts.h"

#include "../../_base/raise.h"
#include "probe_call.h"

#define TRIES 4 /* limit of calls of a probe: a signal handler may interrupt each of them */

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
        Py_FatalError(entries[fact].name); /* read before it was proven */
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

/* The reason why a fact cannot hold here, or NULL. */
static const char *
ground(const struct plus_fact_entry *about)
{
    static char text[96];

    if (version() < PLUS_OLDEST_KNOWN || version() > PLUS_NEWEST_KNOWN) {
        snprintf(text, sizeof text, "nobody has tested this with the structures of Python %u.%u",
                 version() >> 8, version() & 0xff);
        return text;
    }
    if (about->probe == NULL) { /* not of this build */
        return version() < about->from || version() > about->until ? NULL : PLUS_FREE_THREADED;
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

/* True for a lack of memory, or of room on the stack. */
static bool
is_want(PyObject *error)
{
    return PyErr_GivenExceptionMatches(error, PyExc_MemoryError) ||
           PyErr_GivenExceptionMatches(error, PyExc_RecursionError);
}

/* True if a reader raised it in the probe's own function: ValueError, as for data that it does not understand.  An
 * exception of a signal handler or a trace function of the program has their frame behind the probe's. */
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
    /* An error of the probe itself, which comes again each time. */
    bool is_own = refusal != NULL && error != NULL && !is_want(error) &&
                  PyErr_GivenExceptionMatches(error, PyExc_Exception);

    /* Not final if the proof of another fact, which this fact relies on, was put off. */
    *is_final = refusal == NULL || is_own || (error == NULL && refusal != put_off);
    if (is_own && PyErr_GivenExceptionMatches(first, PyExc_Exception)) {
        Py_CLEAR(first);
    }
    /* A probe without memory may fail in another way first: that error does not count. */
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
        const char *refusal = ground(about);

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
