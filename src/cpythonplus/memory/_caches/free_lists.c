/* Since 3.13 the functions that print the free lists are not exported, so the interpreter has to print into a stream
 * of ours: the C library's variable `stderr` points to it for the length of one call.
 *
 *     the asking thread     stderr = ours; sys._debugmallocstats(); stderr = the standard stream
 *     its output            ours -> keep() -> a stream in memory
 *     other threads         ours -> keep() -> the standard stream; unbuffered, so that no output waits or is lost
 *
 * - Our stream is made once and never closed: a thread without the GIL may have read the pointer before it was
 *   restored.
 * - Only one thread asks at a time.  A second one would take our stream for the standard one, and keep() would write
 *   into itself for ever.  The GIL ensures this: all interpreters that may load this extension share one, and the
 *   printing function does not release the GIL and calls no Python code.  A build without a GIL is refused.
 * - Therefore only the interpreter's own function is called: the program may have replaced sys._debugmallocstats by a
 *   lock's `acquire`, or by our function.
 * - C code of another thread may fork meanwhile.  In that child `stderr` stays ours, and passes everything on.
 *
 * Rejected: a file in place of descriptor 2, which other threads and children would write into; a memory stream in
 * `stderr` itself, which would have to be closed after the call; a forked child that prints into a pipe, which copies
 * the page tables of a large process and may hang in a lock of another thread's; reading the lists themselves, which
 * are elsewhere in each version. */
#define _GNU_SOURCE
#include "fixed_costs.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#ifdef __GLIBC__ /* its manual allows setting `stderr`; musl's is a constant */

/* Written by the asking thread, with the GIL held; other threads read `asker` and `standard`. */
static struct {
    FILE *stream;             /* ours */
    FILE *standard;           /* the stream before */
    _Atomic(pthread_t) asker; /* 0: none */
    FILE *kept;               /* the asker's output, in memory */
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
            /* Unbuffered: output of other threads must not stay in the buffer. */
            setvbuf(capture.stream, NULL, _IONBF, 0);
        }
    }
    return capture.stream != NULL;
}

/* Returns the interpreter's own function, borrowed; NULL if there is none, or if the program has replaced it. */
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
