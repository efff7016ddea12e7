/* Work while every other thread stands still.
 *
 * With a GIL its holder is alone, and the work is called at once.  A free-threaded build stops the world for it: each other
 * thread waits at a safe point, or runs C code that may not touch an object. */
#pragma once

#include "../../_base/compat.h"

#ifdef Py_GIL_DISABLED

/* Call `work` once; returns its result.  Calls may be nested: the inner one finds the world stopped.  `work` must not detach, take a lock that a stopped thread may have, make an
 * object that the collector tracks, or run Python code.  Attached; no other fork and no collection goes on meanwhile. */
int
plus_world_stopped(int (*work)(void *), void *arg);

/* NULL, or the reason why plus_world_stopped() must not be called.  Proven once: another thread, which attaches and
 * detaches all the time, must not get on during the work. */
const char *
plus_world_refusal(void);

#else

static inline int
plus_world_stopped(int (*work)(void *), void *arg)
{
    return work(arg);
}

static inline const char *
plus_world_refusal(void)
{
    return NULL;
}

#endif
