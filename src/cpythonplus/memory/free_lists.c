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
#include <string.h>

#ifdef __GLIBC__ /* its manual says that `stderr` may be set; musl's is a constant */

/* Written by the thread that asks, with the GIL held; `asker` is what other threads look at. */
static struct {
    FILE *stream;             /* ours */
    FILE *standard;           /* what was there */
    _Atomic(pthread_t) asker; /* 0: nobody */
    char *text;
    size_t length, room;
    bool failed;
} capture;

static bool
make_room(size_t size)
{
    if (capture.length + size <= capture.room) {
        return true;
    }
    size_t room = 2 * (capture.length + size);
    char *text = realloc(capture.text, room);
    if (text == NULL) {
        return false;
    }
    capture.text = text;
    capture.room = room;
    return true;
}

static ssize_t
keep(void *cookie, const char *data, size_t size)
{
    if (!pthread_equal(atomic_load(&capture.asker), pthread_self())) {
        return (ssize_t)fwrite(data, 1, size, capture.standard);
    }
    if (make_room(size)) {
        memcpy(capture.text + capture.length, data, size);
        capture.length += size;
    }
    else {
        capture.failed = true;
    }
    return (ssize_t)size;
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
    capture.length = 0;
    capture.failed = false;
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
    if (!open_stream()) {
        return PyErr_NoMemory();
    }
    Py_INCREF(function);
    PyObject *text = call_into_stream(function);
    Py_DECREF(function);
    if (text != NULL) {
        Py_DECREF(text);
        text = capture.failed
                   ? PyErr_NoMemory()
                   : PyUnicode_DecodeLatin1(capture.text, (Py_ssize_t)capture.length, NULL);
    }
    free(capture.text);
    capture.text = NULL;
    capture.room = 0;
    return text;
}

#else

PyObject *
plus_free_lists_text(void)
{
    Py_RETURN_NONE;
}

#endif
