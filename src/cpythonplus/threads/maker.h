/* The line that made a lock or a queue, for reports.  Called with the GIL held. */
#pragma once

#include "../_base/compat.h"
#include "../_interp/frames/frames.h"

#include <stdatomic.h>

struct plus_maker {
    PyObject *code; /* NULL: not noted */
    int offset;     /* in bytes */
};

/* Whether lines are noted, which takes a few nanoseconds.  Set once the frames of the interpreter can be read. */
extern _Atomic bool plus_makers_are_noted;

/* The code of threading.RLock, whose caller is the maker; borrowed, only compared; or NULL. */
extern const PyCodeObject *_Atomic plus_maker_of_rlocks;

static inline void
plus_maker_note(struct plus_maker *maker)
{
    maker->code = atomic_load_explicit(&plus_makers_are_noted, memory_order_acquire)
                      ? plus_frames_here(&maker->offset, plus_maker_of_rlocks)
                      : NULL;
}

/* The maker of a SimpleQueue. */
const struct plus_maker *
plus_simple_queue_maker(PyObject *op);
