/* Methods in C that bind as Python's functions do.
 *
 * What `event.set` gives must be a types.MethodType: whoever keeps callbacks weakly (weakref.WeakMethod,
 * the signals of Django and blinker) asks for its __func__, and drops a built-in method at once. */
#ifndef CPYTHONPLUS_THREADS_METHOD_H
#define CPYTHONPLUS_THREADS_METHOD_H

#include "standard/standard.h"

/* Have the native type's methods, those that the standard class has as Python functions, bind like these.
 * 0, or -1 with an exception. */
int
plus_bind_as_functions(struct plus_standard *entry);

#endif
