#define _GNU_SOURCE
#include "pages.h"

#include <errno.h>
#include <sys/mman.h>

#include "../../_base/memory/page.h"

static size_t
states_bytes(const struct plus_pages *pages)
{
    return (pages->end - pages->start) >> pages->shift;
}

int
plus_pages_read(struct plus_pages *pages, uintptr_t start, uintptr_t end)
{
    pages->start = plus_page_floor(start);
    pages->end = plus_page_ceiling(end);
    pages->shift = __builtin_ctzl(plus_page_bytes());
    pages->states = NULL;
    if (pages->start >= pages->end) {
        pages->end = pages->start;
        return 0;
    }
    void *states =
        mmap(NULL, states_bytes(pages), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (states == MAP_FAILED) {
        return -ENOMEM;
    }
    pages->states = states;
    int status = plus_pages_reread(pages, pages->start);
    if (status < 0) {
        plus_pages_free(pages);
    }
    return status;
}

int
plus_pages_reread(struct plus_pages *pages, uintptr_t start)
{
    size_t length = pages->end - pages->start;

    pages->start = start;
    pages->end = start + length;
    return mincore((void *)start, length, pages->states) == 0 ? 0 : -ENOMEM;
}

void
plus_pages_free(struct plus_pages *pages)
{
    if (pages->states != NULL) {
        munmap(pages->states, states_bytes(pages));
    }
    pages->states = NULL;
}

size_t
plus_pages_resident(const struct plus_pages *pages, uintptr_t start, uintptr_t end)
{
    size_t resident = 0;

    while (start < end) {
        uintptr_t next = ((start >> pages->shift) + 1) << pages->shift;
        uintptr_t until = next < end ? next : end;
        if (plus_pages_has(pages, start)) {
            resident += until - start;
        }
        start = until;
    }
    return resident;
}
