/* The methods that all locks share: Lock and RLock, of this room and of tasklets.
 *
 * This is source text, not an ordinary header.  A type's file includes it with PLUS_LOCK(name) defined as the name with
 * the type's prefix, after two functions with that prefix, which the compiler inlines.  (A table of function pointers
 * would add a call to each uncontended acquisition.)
 *
 *     int take(PyObject *op, uint64_t deadline_ns)   1: acquired; 0: not in time (deadline 0: at once); -1 with an
 *                                                    exception
 *     int give(PyObject *op)                         0, or -1 with RuntimeError
 */

static PyObject *
PLUS_LOCK(acquire)(PyObject *op, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    uint64_t deadline_ns;

    if (plus_acquire_arguments(args, nargs, kwnames, &deadline_ns) < 0) {
        return NULL;
    }
    return plus_truth(PLUS_LOCK(take)(op, deadline_ns));
}

static PyObject *
PLUS_LOCK(enter)(PyObject *op, PyObject *ignored)
{
    return plus_truth(PLUS_LOCK(take)(op, PLUS_FUTEX_NO_DEADLINE));
}

static PyObject *
PLUS_LOCK(release)(PyObject *op, PyObject *ignored)
{
    return plus_none(PLUS_LOCK(give)(op));
}

static PyObject *
PLUS_LOCK(exit)(PyObject *op, PyObject *const *args, Py_ssize_t nargs)
{
    return plus_none(PLUS_LOCK(give)(op));
}

#undef PLUS_LOCK
