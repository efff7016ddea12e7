/* Methods in C that bind like Python functions.
 *
 * `event.set` must be a types.MethodType: code that keeps callbacks weakly (weakref.WeakMethod, the signals of Django
 * and blinker) uses its __func__, and drops a built-in method at once. */
#pragma once

#include "standard/standard.h"

/* Makes those methods of the native type that are Python functions in the standard class bind like functions.  Returns
 * 0, or -1 with an exception. */
int
plus_bind_as_functions(struct plus_standard *entry);
