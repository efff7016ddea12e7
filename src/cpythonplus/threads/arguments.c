#include "arguments.h"

#include "../_base/process/clock.h"
#include "../_base/process/futex.h"

#include <math.h>

/* The longest time-out, in seconds: threading.TIMEOUT_MAX of a 64-bit CPython. */
#define TIMEOUT_MAX_S 9223372036.0

/* The message of the running version's Lock.acquire. */
#if PY_VERSION_HEX >= 0x030D0000
#define NEGATIVE_TIMEOUT "timeout value must be a non-negative number"
#else
#define NEGATIVE_TIMEOUT "timeout value must be positive"
#endif

/* threading.Condition.wait with a NaN time-out: an error now, formerly no wait. */
#if PY_VERSION_HEX >= 0x030E0000
#define NAN_DEADLINE PLUS_DEADLINE_NAN
#else
#define NAN_DEADLINE 0
#endif

/* ------------------------------------------------------------------------------------------------
 * Sorting arguments by name
 */

static int
take_keyword(const struct plus_signature *signature, PyObject *name, PyObject *value,
             PyObject **out)
{
    for (int i = 0; i < signature->count; i++) {
        if (PyUnicode_CompareWithASCIIString(name, signature->parameters[i]) != 0) {
            continue;
        }
        if (out[i] != NULL) {
            PyErr_Format(PyExc_TypeError, "%s() got multiple values for argument '%U'",
                         signature->name, name);
            return -1;
        }
        out[i] = value;
        return 0;
    }
    PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'", signature->name,
                 name);
    return -1;
}

static int
take_positional(const struct plus_signature *signature, PyObject *const *args, Py_ssize_t nargs,
                PyObject **out)
{
    int allowed = signature->count - signature->keyword_only;

    if (nargs > allowed) {
        PyErr_Format(PyExc_TypeError, "%s() takes at most %d positional argument%s (%zd given)",
                     signature->name, allowed, allowed == 1 ? "" : "s", nargs);
        return -1;
    }
    for (int i = 0; i < signature->count; i++) {
        out[i] = i < nargs ? args[i] : NULL;
    }
    return 0;
}

static int
check_required(const struct plus_signature *signature, PyObject *const *out)
{
    for (int i = 0; i < signature->required; i++) {
        if (out[i] == NULL) {
            PyErr_Format(PyExc_TypeError, "%s() missing required argument '%s' (pos %d)",
                         signature->name, signature->parameters[i], i + 1);
            return -1;
        }
    }
    return 0;
}

int
plus_arguments(const struct plus_signature *signature, PyObject *const *args, Py_ssize_t nargs,
               PyObject *kwnames, PyObject **out)
{
    Py_ssize_t keywords = kwnames != NULL ? PyTuple_GET_SIZE(kwnames) : 0;

    if (take_positional(signature, args, nargs, out) < 0) {
        return -1;
    }
    for (Py_ssize_t k = 0; k < keywords; k++) {
        PyObject *name = PyTuple_GET_ITEM(kwnames, k);

        if (take_keyword(signature, name, args[nargs + k], out) < 0) {
            return -1;
        }
    }
    return check_required(signature, out);
}

int
plus_init_arguments(const struct plus_signature *signature, PyObject *args, PyObject *kwargs,
                    PyObject **out)
{
    PyObject *name, *value;
    Py_ssize_t position = 0;
    PyObject *const *items = ((PyTupleObject *)args)->ob_item;

    if (take_positional(signature, items, PyTuple_GET_SIZE(args), out) < 0) {
        return -1;
    }
    while (kwargs != NULL && PyDict_Next(kwargs, &position, &name, &value)) {
        if (take_keyword(signature, name, value, out) < 0) {
            return -1;
        }
    }
    return check_required(signature, out);
}

int
plus_no_arguments(const char *name, PyObject *args, PyObject *kwargs)
{
    if (PyTuple_GET_SIZE(args) == 0 && (kwargs == NULL || PyDict_GET_SIZE(kwargs) == 0)) {
        return 0;
    }
    PyErr_Format(PyExc_TypeError, "%s() takes no arguments", name);
    return -1;
}

/* ------------------------------------------------------------------------------------------------
 * Time-outs
 */

static uint64_t
deadline_after(double timeout_s)
{
    if (timeout_s > TIMEOUT_MAX_S) {
        return PLUS_DEADLINE_TOO_LARGE;
    }
    /* Rounded up, so that no wait ends before its time. */
    return plus_now_ns() + (uint64_t)ceil(timeout_s * 1e9);
}

int
plus_check_deadline(uint64_t deadline_ns)
{
    switch (deadline_ns) {
    case PLUS_DEADLINE_TOO_LARGE:
        PyErr_SetString(PyExc_OverflowError, "timeout value is too large");
        return -1;
    case PLUS_DEADLINE_NEGATIVE:
    case PLUS_DEADLINE_VERY_NEGATIVE:
        PyErr_SetString(PyExc_ValueError, "'timeout' must be a non-negative number");
        return -1;
    case PLUS_DEADLINE_NAN:
        PyErr_SetString(PyExc_ValueError, "Invalid value NaN (not a number)");
        return -1;
    default:
        return 0;
    }
}

/* Returns 1 or 0; -1 with an exception. */
static int
is_blocking(PyObject *flag)
{
    return flag == NULL || flag == Py_True ? 1 : PyObject_IsTrue(flag);
}

static int
acquire_deadline(PyObject *blocking, PyObject *timeout, uint64_t *deadline_ns)
{
    int waits = is_blocking(blocking);
    double timeout_s = timeout != NULL ? PyFloat_AsDouble(timeout) : -1.0;

    if (waits < 0 || (timeout_s == -1.0 && PyErr_Occurred())) {
        return -1;
    }
    if (isnan(timeout_s)) {
        return plus_check_deadline(PLUS_DEADLINE_NAN);
    }
    if (timeout_s < -TIMEOUT_MAX_S) {
        return plus_check_deadline(PLUS_DEADLINE_TOO_LARGE);
    }
    if (!waits && timeout_s != -1.0) {
        PyErr_SetString(PyExc_ValueError, "can't specify a timeout for a non-blocking call");
        return -1;
    }
    if (timeout_s < 0.0 && timeout_s != -1.0) {
        PyErr_SetString(PyExc_ValueError, NEGATIVE_TIMEOUT);
        return -1;
    }
    if (!waits || timeout_s == -1.0) {
        *deadline_ns = waits ? PLUS_FUTEX_NO_DEADLINE : 0;
        return 0;
    }
    *deadline_ns = deadline_after(timeout_s);
    return plus_check_deadline(*deadline_ns);
}

static const struct plus_signature acquire_signature =
    PLUS_SIGNATURE("acquire", 0, "blocking", "timeout");

int
plus_acquire_arguments(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
                       uint64_t *deadline_ns)
{
    PyObject *given[2];

    if (nargs == 0 && kwnames == NULL) {
        *deadline_ns = PLUS_FUTEX_NO_DEADLINE;
        return 0;
    }
    if (plus_arguments(&acquire_signature, args, nargs, kwnames, given) < 0) {
        return -1;
    }
    return acquire_deadline(given[0], given[1], deadline_ns);
}

int
plus_wait_deadline(PyObject *timeout, uint64_t *deadline_ns)
{
    if (timeout == NULL || timeout == Py_None) {
        *deadline_ns = PLUS_FUTEX_NO_DEADLINE;
        return 0;
    }
    double timeout_s = PyFloat_AsDouble(timeout);
    if (timeout_s == -1.0 && PyErr_Occurred()) {
        return -1;
    }
    if (isnan(timeout_s)) {
        *deadline_ns = NAN_DEADLINE;
        return 0;
    }
    *deadline_ns = timeout_s > 0.0 ? deadline_after(timeout_s) : 0;
    return 0;
}

int
plus_queue_deadline(PyObject *block, PyObject *timeout, uint64_t *deadline_ns)
{
    int waits = is_blocking(block);

    if (waits <= 0) {
        *deadline_ns = 0;
        return waits;
    }
    if (timeout == NULL || timeout == Py_None) {
        *deadline_ns = PLUS_FUTEX_NO_DEADLINE;
        return 0;
    }
    double timeout_s = PyFloat_AsDouble(timeout);
    if (timeout_s == -1.0 && PyErr_Occurred()) {
        return -1;
    }
    *deadline_ns = isnan(timeout_s)              ? PLUS_DEADLINE_NAN
                   : timeout_s >= 0.0            ? deadline_after(timeout_s)
                   : timeout_s >= -TIMEOUT_MAX_S ? PLUS_DEADLINE_NEGATIVE
                                                 : PLUS_DEADLINE_VERY_NEGATIVE;
    return 0;
}

/* ------------------------------------------------------------------------------------------------
 * Common to Queue and SimpleQueue
 */

const struct plus_signature plus_put_signature =
    PLUS_SIGNATURE("put", 1, "item", "block", "timeout");
const struct plus_signature plus_put_nowait_signature = PLUS_SIGNATURE("put_nowait", 1, "item");
const struct plus_signature plus_get_signature = PLUS_SIGNATURE("get", 0, "block", "timeout");
static const struct plus_signature drain_signature = PLUS_SIGNATURE("drain", 0, "max_items");

int
plus_drain_arguments(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, Py_ssize_t *limit)
{
    PyObject *given;

    if (plus_arguments(&drain_signature, args, nargs, kwnames, &given) < 0) {
        return -1;
    }
    *limit = PY_SSIZE_T_MAX;
    if (given == NULL || given == Py_None) {
        return 0;
    }
    *limit = PyNumber_AsSsize_t(given, PyExc_OverflowError);
    if (*limit == -1 && PyErr_Occurred()) {
        return -1;
    }
    if (*limit < 0) {
        PyErr_SetString(PyExc_ValueError, "max_items must not be negative");
        return -1;
    }
    return 0;
}
