/* Calls of our Python functions that the program's tracer, profiler and coverage do not see.
 *
 * What stands in `sys.meta_path`, and what a module is loaded by, is called in the midst of the program: as functions of
 * Python their lines would be in its coverage and their time in its profile.  So what the import system calls are
 * functions of C.  They call ours with tracing switched off for this thread, and a module's own loader with it on.
 *
 * Everything with the GIL held.  fork: nothing to do.
 */
#ifndef PLUS_BASE_UNSEEN_H
#define PLUS_BASE_UNSEEN_H

#include "compat.h"

/* unseen_finder(names, function), unseen_loader(before, load, after) */
extern PyMethodDef plus_unseen_methods[];

#endif
