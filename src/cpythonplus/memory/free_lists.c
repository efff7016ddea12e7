/* Since 3.13 the functions that print the free lists are not exported, so they must be made to print where we read.
 *
 * Rejected: a file in place of descriptor 2, which other threads and children would write into; and a memory stream
 * that is closed behind the call: a thread without the GIL may have fetched the pointer before.  This stream is made
 * once, is never closed, keeps what the asking thread writes and passes on everything else. */
#define _GNU_SOURCE
#include "free_lists.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef __GLIBC__ /* its manual says that `stderr` may be set; musl's is a constant */

/* Written by the thread that asks, with the GIL held; `asker` is what other threads look at. */
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

static PyObject *
call_into_stream(PyObject *function)
{
    capture.standard = stderr;
    atomic_store(&capture.asker, pthread_self());
    stderr = capture.stream;
    PyObject *result = PyObject_CallNoArgs(function);
    stderr = capture.standard;
    atomic_store(&capture.asker, (pthread_t)0);
    return result;
}

PyObject *
plus_free_lists_text(void)
{
    PyObject *function = PySys_GetObject("_debugmallocstats"); /* borrowed */

    if (function == NULL || !PyCFunction_CheckExact(function)) {
        return Py_NewRef(Py_None);
    }
    char *bytes = NULL;
    size_t length = 0;
    capture.kept = open_stream() ? open_memstream(&bytes, &length) : NULL;
    if (capture.kept == NULL) {
        return PyErr_NoMemory();
    }
    Py_INCREF(function);
    PyObject *text = call_into_stream(function);
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
