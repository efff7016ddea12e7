/* Being told just before the process becomes another program.
 *
 * os.execv and os.execve are all that os has for it: the other six call these two.  They stay the objects that
 * they are; only what a call of the object goes to is ours, which tells and then goes on to where it went
 * before (PyCFunctionObject.vectorcall, a public field).  So nothing can be seen of it: no other name, type,
 * signature or hash, no frame in a traceback, and whoever took the functions out of `os` before is told of as
 * well.  A place in the program that has called one of them several times and is still there may be
 * specialised by then, and goes to the C function itself; nobody is told of that.
 *
 * Rejected: an audit hook, which sees the same and makes each audited call of the program slower (`id()`,
 * `open()`, imports, logging) and can never be taken off; functions of Python in `os`, which show in
 * tracebacks, are no builtins, and are not what `os.supports_fd` holds; another C function in the
 * definition (ml_meth), which is in the hash of the object, so that `os.supports_fd` loses it.
 */
#ifndef PLUS_BASE_EXEC_WATCH_H
#define PLUS_BASE_EXEC_WATCH_H

#include "../compat.h"

/* exec_watch(function): have `function` called with the arguments of each os.execv and os.execve before it
 * works; None: nobody.  What it returns or raises is ignored, but for an exception that is no Exception (Ctrl-C).
 * Main interpreter, with the GIL held; a forked child is watched as its parent is.  False where these functions
 * are not as they are known, and nothing was changed. */
extern PyMethodDef plus_exec_watch_methods[];

#endif
