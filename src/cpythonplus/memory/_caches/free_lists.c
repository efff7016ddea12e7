/* Since 3.13 the functions that print the free lists are not exported, so they must be made to print where we read: the C
 * library's variable `stderr` points to a stream of ours for the length of one call.
 *
 *     the asking thread     stderr = ours; sys._debugmallocstats(); stderr = what was there
 *     what it prints        ours -> keep() -> a stream in memory
 *     all others, meanwhile ours -> keep() -> what was there; unbuffered, so that nothing of theirs waits or is lost
 *
 * - Ours is made once and never closed: a thread without the GIL may have fetched the pointer before it was put back.
 * - One asker at a time.  A second one would take ours for what was there, and keep() would then write into itself for
 *   ever.  The GIL sees to it: all interpreters that may load this extension share one, and the function prints, lets go
 *   of no GIL and calls no Python code.  A build without a GIL is refused.
 * - So nothing but the interpreter's own function is called, whatever the program has put in place of
 *   sys._debugmallocstats: a lock's `acquire`, or ours.
 * - C code of another thread may fork meanwhile.  In that child ours stays in `stderr`, and passes everything on.
 *
 * Rejected: a file in place of descriptor 2, which other threads and children would write into; a memory stream in
 * `stderr` itself, which would have to be closed behind the call; a forked child that prints into a pipe, which copies
 * the page tables of a large process and may hang in a lock of another thread's; reading the lists where they lie, which
 * is another place in each version. */
#define _GNU_SOURCE
#include "free_lists.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __GLIBC__ /* its manual says that `stderr` may be set; musl's is a constant */

/* Written by the thread that asks, with the GIL held; `asker` and `standard` are what other threads look at. */
static struct {
    FILE *stream;             /* ours */
    FILE *standard;           /* what was there */
    _Atomic(pthread_t) asker; /* 0: nobody */
    FILE *kept;               /* what the asker wrote, in memory */
} capture;

static ssize_t
keep(void *cookie, const char *data, size_t size)
{
    bool asks = pthread_equal(atomic_load(&capture.asker), pthread_self());

    return (ssize_t)fwrite(data, 1, size, asks ? capture.kept : capture.standard);
}

static bool
open_stream(void)
{
    if (capture.stream == NULL) {
        capture.stream = fopencookie(NULL, "w", (cookie_io_functions_t){.write = keep});
        if (capture.stream != NULL) {
            /* Nothing of others may wait in it. */
            setvbuf(capture.stream, NULL, _IONBF, 0);
        }
    }
    return capture.stream != NULL;
}

/* The interpreter's own function, borrowed; NULL where there is none, or the program has another one there. */
static PyObject *
own_function(void)
{
    PyObject *function = PySys_GetObject("_debugmallocstats");

    if (function == NULL || !PyCFunction_CheckExact(function)) {
        return NULL;
    }
    const PyMethodDef *method = ((PyCFunctionObject *)function)->m_ml;
    PyObject *self = PyCFunction_GET_SELF(function);
    bool is_own = self != NULL && PyModule_CheckExact(self) &&
                  strcmp(method->ml_name, "_debugmallocstats") == 0;
    return is_own ? function : NULL;
}

PyObject *
plus_free_lists_text(void)
{
    PyObject *function = own_function();
    char *bytes = NULL;
    size_t length = 0;

    if (function == NULL) {
        return Py_NewRef(Py_None);
    }
    capture.kept = open_stream() ? open_memstream(&bytes, &length) : NULL;
    if (capture.kept == NULL) {
        return PyErr_NoMemory();
    }
    Py_INCREF(function);
    capture.standard = stderr;
    atomic_store(&capture.asker, pthread_self());
    stderr = capture.stream;
    PyObject *text = PyObject_CallNoArgs(function);
    stderr = capture.standard;
    atomic_store(&capture.asker, (pthread_t)0);
    Py_DECREF(function);
    bool failed = ferror(capture.kept) != 0;
    failed |= fclose(capture.kept) != 0;
    if (text != NULL) {
        Py_DECREF(text);
        text = failed ? PyErr_NoMemory() : PyUnicode_DecodeLatin1(bytes, (Py_ssize_t)length, NULL);
    }
    free(bytes);
    return text;
}

#else

PyObject *
plus_free_lists_text(void)
{
    Py_RETURN_NONE;
}

#endif
