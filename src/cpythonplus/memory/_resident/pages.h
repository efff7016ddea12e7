/* Which pages of a range of this process's addresses are in memory.  Knows nothing of Python; needs no GIL. */
#ifndef PLUS_MEMORY_PAGES_H
#define PLUS_MEMORY_PAGES_H

#include <stddef.h>
#include <stdint.h>

struct plus_pages {
    uintptr_t start, end; /* multiples of the page size, which is 1 << shift */
    int shift;
    unsigned char *states; /* for each page: bit 0 says that it is there */
};

/* Reads the states of [start, end), rounded to whole pages.  What is mapped now may be unmapped before it is looked
 * at: the states are a copy.  0; -ENOMEM, also where some of the range is not mapped.  The states come from
 * mmap, so that no heap changes. */
int
plus_pages_read(struct plus_pages *pages, uintptr_t start, uintptr_t end);

/* As before for another range of no more pages, without new memory. */
int
plus_pages_reread(struct plus_pages *pages, uintptr_t start);

void
plus_pages_free(struct plus_pages *pages);

/* Bytes of [start, end), which lies within the range, that are in memory. */
size_t
plus_pages_resident(const struct plus_pages *pages, uintptr_t start, uintptr_t end);

static inline int
plus_pages_has(const struct plus_pages *pages, uintptr_t address)
{
    return pages->states[(address - pages->start) >> pages->shift] & 1;
}

#endif
