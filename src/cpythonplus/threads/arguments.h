/* Arguments of the room's callables, sorted by name, and conversion of time-outs to deadlines.  Messages are those of
 * the running version's own types, if those are C.
 *
 * Called with the GIL held (attached, on a free-threaded build).
 */
#pragma once

#include "../_base/compat.h"

struct plus_signature {
    const char *name; /* of the function, for messages */
    const char *const *parameters;
    int count, required, keyword_only; /* the last keyword_only parameters are keyword-only */
};

/* A signature whose parameters can all be given by position. */
#define PLUS_SIGNATURE(function, required_, ...)                                                   \
    {                                                                                              \
        .name = (function),                                                                        \
        .parameters = (const char *const[]){__VA_ARGS__},                                          \
        .count = (int)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *)),         \
        .required = (required_),                                                                   \
    }

/* Sorts the arguments of a METH_FASTCALL | METH_KEYWORDS function into out[0..count), borrowed; NULL for arguments that
 * were not given.  Returns 0, or -1 with TypeError. */
int
plus_arguments(const struct plus_signature *signature, PyObject *const *args, Py_ssize_t nargs,
               PyObject *kwnames, PyObject **out);

/* Like plus_arguments(), for the arguments of a tp_init. */
int
plus_init_arguments(const struct plus_signature *signature, PyObject *args, PyObject *kwargs,
                    PyObject **out);

/* Returns 0, or -1 with TypeError if a callable without parameters was given arguments. */
int
plus_no_arguments(const char *name, PyObject *args, PyObject *kwargs);

/* Computes the deadline of acquire(blocking=True, timeout=-1); 0: do not wait.  Returns 0, or -1 with ValueError,
 * OverflowError or TypeError. */
int
plus_acquire_arguments(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
                       uint64_t *deadline_ns);

/* Deadlines that stand for invalid time-outs: as in the standard library, an invalid time-out is an error only for a
 * call that has to wait. plus_check_deadline raises the error: it returns 0, or -1 with OverflowError or ValueError. */
#define PLUS_DEADLINE_TOO_LARGE (UINT64_MAX - 1u)
#define PLUS_DEADLINE_NEGATIVE (UINT64_MAX - 2u)
#define PLUS_DEADLINE_NAN (UINT64_MAX - 3u)
#define PLUS_DEADLINE_VERY_NEGATIVE (UINT64_MAX - 4u) /* beyond a 64-bit clock */

int
plus_check_deadline(uint64_t deadline_ns);

/* Computes the deadline of wait(timeout=None): 0 for a time-out that is not above zero, as in threading.Condition; may
 * be TOO_LARGE or, from 3.14 on, NAN.  Returns -1 with TypeError. */
int
plus_wait_deadline(PyObject *timeout, uint64_t *deadline_ns);

/* Computes the deadline of get(block=True, timeout=None) and the like; may be any of the above.  Returns -1 with
 * TypeError. */
int
plus_queue_deadline(PyObject *block, PyObject *timeout, uint64_t *deadline_ns);

/* The signatures of Queue and SimpleQueue. */
extern const struct plus_signature plus_put_signature, plus_put_nowait_signature,
    plus_get_signature;

/* Gets the largest number of items for drain(max_items=None).  Returns 0, or -1 with an exception. */
int
plus_drain_arguments(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, Py_ssize_t *limit);
