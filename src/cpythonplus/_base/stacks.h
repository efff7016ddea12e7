/* The frames of other threads, without a collection meanwhile.
 *
 * Up to 3.11 each allocation may begin a collection.  Its finalizers let other threads run while the interpreter is in
 * the midst of making frame objects: a thread goes on, and the new object keeps a pointer to a frame that is gone; or
 * the finalizer's thread waits for the list of threads, which sys._current_frames() has locked.  Plain Python 3.11
 * crashes and hangs so.
 *
 * GIL held. fork: nothing to do.
 */
#pragma once

#include "compat.h"

/* stacks_without_collection(function, *args), stacks_outwards(frame) */
extern PyMethodDef plus_stacks_methods[];
