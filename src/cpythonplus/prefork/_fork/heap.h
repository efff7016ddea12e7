/* Making every object that is reachable now immortal, and leaving no half-used memory behind.
 *
 * All with the GIL held, in the process that is about to fork.  Python code runs only where a comment
 * says so.
 */
#ifndef PLUS_PREFORK_HEAP_H
#define PLUS_PREFORK_HEAP_H

#include "../../_base/compat.h"

struct plus_heap_report {
    Py_ssize_t objects; /* made immortal by this call */
    Py_ssize_t bytes;   /* of their own structures */
    PyObject
        *kept; /* list of (type, how many stayed mortal for it, how many for a weak reference) */
    Py_ssize_t unheld; /* tuples and frozensets that nothing which can be seen holds: mortal */
};

/* Makes immortal what the garbage collector knows, what hangs on it, and the types in the list `types`.
 * Kept mortal: objects whose type has a finaliser or is in the list `mortal`, frames, tracebacks and
 * exceptions, objects (but for types, functions and modules) that a weak reference with a callback
 * points to, the objects in the list `spared`, and tuples and frozensets that may still be being filled.
 * Ends before the next object when
 * `limit` bytes have been made immortal; the rest stays mortal, which is safe.  The collector must be off
 * and nothing frozen.  Runs no Python code.
 * 0, or -1 with MemoryError; the report's list is the caller's. */
int
plus_heap_immortalize(PyObject *types, PyObject *mortal, PyObject *spared, Py_ssize_t limit,
                      struct plus_heap_report *report);

/* Takes the free blocks of pymalloc's half-used pools for good, so that what a child allocates lies on
 * fresh pages and not between what it shares.  Returns the bytes taken, 0 if it was not worth it or if earlier
 * calls have taken as much as a process may lose; -1 where the objects' allocator is not pymalloc as it is
 * known here (then nothing was taken). */
Py_ssize_t
plus_pools_fill(void);

/* The same with the gaps of the C library's heap that no pool would fill.  0 where they cannot be seen. */
Py_ssize_t
plus_malloc_fill(void);

#endif
