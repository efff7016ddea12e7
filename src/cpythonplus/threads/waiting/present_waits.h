/* The waits of this moment, for reports; only waits that have to sleep are noted.
 *
 * A thread of the main interpreter notes its wait in its record (gil/scheduler/thread.h), while it is without the GIL.
 * The note lies on its stack.  It is written and read with the main interpreter's GIL, so a reader sees no wait that has
 * returned.
 */
#pragma once

#include "../../_base/compat.h"
#include "waitq.h"

#include "../../gil/scheduler/thread.h"

struct plus_present_wait {
    const struct plus_waiter *waiter;
    uint64_t deadline_ns; /* PLUS_FUTEX_NO_DEADLINE: none */
};

/* Called with the GIL held, around the code that gives it up.  A thread without memory for a record is not reported. */
static inline void
plus_present_wait_begins(const struct plus_present_wait *wait)
{
    struct plus_thread *self = plus_thread_try_self();

    if (self != NULL && PyInterpreterState_Get() == PyInterpreterState_Main()) {
        self->present_wait = wait;
    }
}

static inline void
plus_present_wait_ends(void)
{
    struct plus_thread *self = plus_thread_if_known();

    if (self != NULL) {
        self->present_wait = NULL;
    }
}
