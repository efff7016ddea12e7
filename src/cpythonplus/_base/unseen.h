/* Calls of our Python functions that the program's tracer, profiler and coverage do not see.
 *
 * The finders in `sys.meta_path` and the loaders of modules are called in the midst of the program: if ours were Python
 * functions, their lines would be in its coverage and their time in its profile.  So the import system calls C
 * functions.  They call ours with tracing switched off for this thread, and a module's own loader with tracing on.
 *
 * GIL held. fork: nothing to do.
 */
#pragma once

#include "compat.h"

/* unseen_finder(names, function), unseen_loader(before, load, after) */
extern PyMethodDef plus_unseen_methods[];
