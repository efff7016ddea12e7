/* Making every reachable object immortal, and taking half-used memory.
 *
 * GIL held, in the process that is about to fork.  Python code runs only where a comment says so.
 */
#pragma once

#include "../../_base/compat.h"

struct plus_heap_report {
    Py_ssize_t objects; /* made immortal by this call */
    Py_ssize_t bytes;   /* of their own structures */
    /* List of (type, number of objects kept mortal because of the type, number because of a weak reference). */
    PyObject *kept;
    Py_ssize_t unheld; /* tuples and frozensets without a visible holder: mortal */
};

/* Make all objects immortal that the garbage collector tracks, those reachable from them, and the types in the list
 * `types`.  Kept mortal: objects whose type has a finaliser or is in the list `mortal`, frames, tracebacks and
 * exceptions, objects (except types, functions and modules) that a weak reference with a callback points to, the
 * objects in the list `spared`, and tuples and frozensets that may still be being filled.  Ends when `limit` bytes have
 * been made immortal; the rest stays mortal, which is safe.  The collector must be off and no object frozen.  Runs no
 * Python code.  0, or -1 with MemoryError; the report's list is the caller's. */
int
plus_heap_immortalize(PyObject *types, PyObject *mortal, PyObject *spared, Py_ssize_t limit,
                      struct plus_heap_report *report);

/* Take the free blocks of pymalloc's half-used pools for good, so that a child's allocations go to fresh pages and not
 * between shared objects.  Returns the bytes taken, 0 if it was not worth it or if earlier calls have taken as much as
 * a process may lose; -1 if the objects' allocator is not pymalloc with the known layout (then nothing was taken). */
Py_ssize_t
plus_pools_fill(void);

/* Take the gaps of the main heap of malloc for good, as plus_pools_fill() takes pymalloc's free blocks.  Returns the
 * bytes taken; 0 if that was not worth it, or if malloc is not glibc's. */
Py_ssize_t
plus_malloc_fill(void);
