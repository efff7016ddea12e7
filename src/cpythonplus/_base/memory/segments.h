/* The variables of the program and of its libraries: their writable segments.  Knows nothing of Python. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct plus_segment {
    uintptr_t start, end;               /* including the part without contents in the file */
    uintptr_t object_start, object_end; /* of the whole library, including code */
};

struct plus_segments {
    struct plus_segment *list;
    size_t count;
};

/* 0, and the list is the caller's until plus_segments_free(); -ENOMEM.  Takes the loader's lock: call it without the
 * GIL, since a thread that loads a library may wait for the GIL. */
int
plus_segments_read(struct plus_segments *segments);

void
plus_segments_free(struct plus_segments *segments);

/* The segment around an address, or NULL. */
const struct plus_segment *
plus_segments_at(const struct plus_segments *segments, uintptr_t address);
