/* Pages in memory, and a heap of the C library on them: the same whatever the size of a page is. */
#define _GNU_SOURCE
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memory/_resident/c_heap.h"
#include "memory/_resident/pages.h"

#define PAGES 16

static size_t page;

static char *
map_pages(void)
{
    char *start =
        mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert(start != MAP_FAILED);
    return start;
}

static void
check_pages(void)
{
    char *start = map_pages();
    uintptr_t from = (uintptr_t)start, end = from + PAGES * page;
    struct plus_pages pages;

    start[2 * page] = start[3 * page + 1] = start[7 * page - 1] = 1;
    assert(plus_pages_read(&pages, from + 1, end - 1) == 0);
    assert(pages.start == from && pages.end == end);
    for (uintptr_t i = 0; i < PAGES; i++) {
        assert(plus_pages_has(&pages, from + i * page) == (i == 2 || i == 3 || i == 6));
    }
    assert(plus_pages_resident(&pages, from, end) == 3 * page);
    assert(plus_pages_resident(&pages, from + 2 * page + 100, from + 3 * page + 50) == page - 50);
    plus_pages_free(&pages);
    munmap(start, PAGES * page);
}

static void
put_chunk(char *at, size_t bytes, bool is_before_in_use)
{
    size_t word = bytes | is_before_in_use;

    memcpy(at + sizeof word, &word, sizeof word);
}

/* A chunk in use of a bit more than two pages, a free one of six, one in use, and the top. */
static void
check_heap(void)
{
    char *start = map_pages();
    uintptr_t from = (uintptr_t)start;
    size_t used = 2 * page + 64, unused = 6 * page, last = 4096, top;
    struct plus_c_heap heap;

    top = PAGES * page - used - unused - last;
    memset(start, 1, used);
    put_chunk(start, used, true);
    put_chunk(start + used, unused, true);
    memset(start + used + 64, 1, 3 * page);
    memset(start + used + unused, 1, last);
    put_chunk(start + used + unused, last, false);
    put_chunk(start + used + unused + last, top, true);

    assert(plus_c_heap_walk(&heap, from, from, from + PAGES * page, 0) == 0);
    assert(heap.chunks == 2 && heap.last[0].bytes == used && heap.last[1].bytes == last);
    assert(heap.used == used + last && heap.cached == 0);
    /* What it was given and did not touch is not there, but for the ends of pages that are. */
    assert(heap.free >= 3 * page && heap.free < unused);
    assert(heap.returnable >= 3 * page && heap.returnable % page == 0);
    assert(heap.used + heap.free + heap.top <= PAGES * page);
    munmap(start, PAGES * page);
}

static void
check_mapped(void)
{
    char *start = map_pages();
    size_t word = PAGES * page | 2;

    memcpy(start + sizeof word, &word, sizeof word);
    assert(plus_c_heap_mapped((uintptr_t)start, PAGES * page) == PAGES * page);
    word = (PAGES * page - 1024) | 2;
    memcpy(start + sizeof word, &word, sizeof word);
    assert(plus_c_heap_mapped((uintptr_t)start, PAGES * page) == 0);
    munmap(start, PAGES * page);
}

int
main(void)
{
    page = (size_t)sysconf(_SC_PAGESIZE);
    check_pages();
    check_heap();
    check_mapped();
    puts("ok");
    return 0;
}
