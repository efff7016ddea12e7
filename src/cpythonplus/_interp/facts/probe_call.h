/* A Python function for probes that calls back: its references in the interpreter are known.
 *
 *     def probe(first, look):
 *         second = first
 *         return first, look(first, second)
 */
#pragma once

#include "../../_base/compat.h"

#define PLUS_PROBE_FILE "<cpythonplus probe>" /* of its code */

struct plus_probe_call {
    PyCodeObject *code; /* of the function */
    PyObject *first;    /* its argument; no other code refers to it */
    PyObject *callable; /* `look` */
};

/* The function `probe` that the source defines, a new reference; NULL with an exception. */
PyObject *
plus_probe_function(const char *source);

/* Call look(call, arg) from inside the function; all is borrowed.  0, or -1 with an exception. */
int
plus_probe_call(void (*look)(const struct plus_probe_call *call, void *arg), void *arg);
