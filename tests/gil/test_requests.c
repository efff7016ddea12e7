/* Requests for the GIL around an atomic section, in the one order that matters: the waiters' and the
 * holder's steps are made by one thread, so that each meeting of the two is certain to happen. */
#include "check.h"

#include "gil/scheduler/sched.h"

static struct plus_thread *
holder_that_was_not_asked(void)
{
    plus_sched_track();
    plus_sched_acquired();
    return plus_thread_self();
}

static void
a_request_before_the_section_is_answered_first(void)
{
    struct plus_thread *self = holder_that_was_not_asked();

    CHECK(plus_sched_may_ask());
    CHECK(plus_sched_atomic_enter(self));
    plus_sched_acquired(); /* it gave the GIL up and took it again */
    CHECK(!plus_sched_atomic_enter(self));
    CHECK(!plus_sched_atomic_leave(self));
    CHECK(!plus_sched_atomic_leave(self));
}

static void
a_request_inside_the_section_waits_for_its_end(void)
{
    struct plus_thread *self = holder_that_was_not_asked();

    CHECK(!plus_sched_atomic_enter(self));
    CHECK(!plus_sched_may_ask());
    CHECK(plus_sched_atomic_leave(self));
    plus_sched_hand_over_begins(self);
    plus_sched_acquired();
    CHECK(!plus_sched_atomic_enter(self)); /* nothing is left of it */
    CHECK(!plus_sched_atomic_leave(self));
}

/* The interpreter already has the first request: the second waiter, which comes between the two steps
 * of entering, must not withdraw it. */
static void
a_second_request_leaves_the_first(void)
{
    struct plus_thread *self = holder_that_was_not_asked();

    CHECK(plus_sched_may_ask());
    atomic_store(&self->atomic_depth, 1); /* the first half of entering */
    CHECK(!plus_sched_may_ask());
    atomic_store(&self->atomic_depth, 0);
    CHECK(plus_sched_atomic_enter(self)); /* the second half still sees that it was asked */
    plus_sched_acquired();
    plus_sched_atomic_leave(self);
}

static void
what_was_asked_before_tracking_counts(void)
{
    struct plus_thread *self = holder_that_was_not_asked();

    plus_sched_track();
    CHECK(plus_sched_atomic_enter(self));
    plus_sched_acquired();
    plus_sched_atomic_leave(self);
}

int
main(void)
{
    CHECK(plus_threads_init() == 0);
    a_request_before_the_section_is_answered_first();
    a_request_inside_the_section_waits_for_its_end();
    a_second_request_leaves_the_first();
    what_was_asked_before_tracking_counts();
    return 0;
}
