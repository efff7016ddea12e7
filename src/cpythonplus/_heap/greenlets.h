/* The variables of greenlets that are suspended, which the garbage collector cannot see. */
#pragma once

/* In a copy of the process, before a walk: note the frames of all suspended greenlets (live_frames.h).  0, or -ENOMEM. */
int
plus_greenlets_note(void);
