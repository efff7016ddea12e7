/* The resident pages of a range of this process's addresses.  Nothing here uses Python or needs the GIL. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct plus_pages {
    uintptr_t start, end; /* multiples of the page size, which is 1 << shift */
    int shift;
    unsigned char *states; /* for each page: bit 0 is set if it is in memory */
};

/* Reads the states of [start, end), rounded to whole pages.  The states are a copy: pages may be unmapped meanwhile.
 * 0; -ENOMEM, also if some of the range is not mapped.  The states are allocated by mmap, so that no heap changes. */
int
plus_pages_read(struct plus_pages *pages, uintptr_t start, uintptr_t end);

/* Reads another range of no more pages into the same memory. */
int
plus_pages_reread(struct plus_pages *pages, uintptr_t start);

void
plus_pages_free(struct plus_pages *pages);

/* Returns the bytes of [start, end) that are in memory; it lies within the range. */
size_t
plus_pages_resident(const struct plus_pages *pages, uintptr_t start, uintptr_t end);

static inline int
plus_pages_has(const struct plus_pages *pages, uintptr_t address)
{
    return pages->states[(address - pages->start) >> pages->shift] & 1;
}
