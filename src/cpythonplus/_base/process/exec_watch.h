/* Notification just before the process becomes another program.
 *
 * os has only os.execv and os.execve for it: the other six functions call these two.  The objects stay the same; only
 * the function that a call of the object runs is ours: it notifies the watcher and then runs the original one
 * (PyCFunctionObject.vectorcall, a public field).  So the change is invisible: no other name, type, signature or hash,
 * no frame in a traceback, and calls of copies that were taken out of `os` before are noticed as well.  A call site in
 * the program that has called one of them several times before may be specialised, and calls the C function directly;
 * that is not noticed.
 *
 * Rejected: an audit hook, which notices the same, but makes each audited call of the program slower (`id()`, `open()`,
 * imports, logging) and can never be removed; Python functions in `os`, which show in tracebacks, are no builtins, and
 * are not the objects in `os.supports_fd`; another C function in the definition (ml_meth), which is part of the
 * object's hash, so that `os.supports_fd` loses it.
 */
#ifndef PLUS_BASE_EXEC_WATCH_H
#define PLUS_BASE_EXEC_WATCH_H

#include "../compat.h"

/* exec_watch(function): call `function` with the arguments of each os.execv and os.execve before it works; None removes
 * it.  Its result and exceptions are ignored, except an exception that is no Exception (Ctrl-C).  For the main
 * interpreter, with the GIL held; a forked child is watched like its parent.  False, and no change, if these functions
 * are not as expected. */
extern PyMethodDef plus_exec_watch_methods[];

#endif
