/* Chunks as memory/_resident/c_heap.c draws them.  In a copy nothing changes, so memory is read where it is, and a walk
 * from the first chunk leads to the end of the heap, or the layout is not that of glibc.
 *
 * A block that malloc maps by itself is a chunk of whole pages with a flag, at the beginning of a page.  The kernel joins
 * neighbouring mappings, so each page in memory may begin one.  pagemap tells which are: a read would make a page of one
 * that is not there, and fetch one from the swap.
 *
 * Rejected: looking at each multiple of 16.  A freed chunk that was merged with the one in front of it still looks like
 * an object. */
#define _GNU_SOURCE
#include "c_blocks.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../_base/memory/own_memory.h"
#include "../_base/memory/page.h"

#define THREAD_HEAP ((uintptr_t)64 << 20) /* size and alignment */
#define GRAIN ((uintptr_t)16)
#define BEFORE_IN_USE ((uintptr_t)1)
#define MAPPED ((uintptr_t)2)
#define FLAGS ((uintptr_t)7)

struct visiting {
    size_t least;
    int pages; /* /proc/self/pagemap; -1: not readable */
    int (*visit)(const char *block, size_t bytes, void *arg);
    void *arg;
    int status;
};

static uintptr_t
word_at(uintptr_t address)
{
    uintptr_t word;

    memcpy(&word, (const void *)address, sizeof word);
    return word;
}

/* True if the chunks lead from `at` to `end`. it: NULL if nothing is to be visited. */
static bool
walk(uintptr_t at, uintptr_t end, struct visiting *it)
{
    while (end - at >= 2 * GRAIN) {
        uintptr_t bytes = word_at(at + sizeof at) & ~FLAGS;

        if (bytes == end - at) {
            return true; /* the top */
        }
        if (bytes % GRAIN != 0 || bytes == 0 || bytes > end - at - GRAIN) {
            break;
        }
        bool in_use = (word_at(at + bytes + sizeof at) & BEFORE_IN_USE) != 0;
        if (it != NULL && in_use && bytes - sizeof at >= it->least && it->status == 0) {
            it->status = it->visit((const char *)at + GRAIN, bytes - sizeof at, it->arg);
        }
        at += bytes;
    }
    return end - at <= 4 * GRAIN; /* fences at the end of a full heap */
}

static void
visit_heap(uintptr_t first, uintptr_t last_first, uintptr_t end, struct visiting *it)
{
    for (; first <= last_first && first < end; first += GRAIN) {
        if (walk(first, end, NULL)) {
            (void)walk(first, end, it);
            return;
        }
    }
}

#define HEADS 4096 /* the structures of glibc in front of a heap's chunks are shorter */

/* A thread's heap begins with the address of its arena, which lies in the arena's first heap; the third word is the
 * heap's size (malloc/arena.c, 'heap_info').  The offset of the first chunk depends on the version.  Another mapping may
 * have a guard page at `start`, as thread stacks do since glibc 2.42: maps does not tell it. */
static void
visit_thread_heap(uintptr_t start, uintptr_t end, struct visiting *it)
{
    uintptr_t head[3] = {0};
    bool is_read = plus_read_memory(start, head, sizeof head);
    uintptr_t arena = head[0], bytes = head[2];

    if (is_read && arena % THREAD_HEAP < 256 && arena >= THREAD_HEAP && bytes > HEADS &&
        bytes <= end - start) {
        uintptr_t first = arena - start < 256 ? 1024 : 2 * GRAIN;
        visit_heap(start + first, start + HEADS, start + bytes, it);
    }
}

#define PAGES 512
#define IN_MEMORY (UINT64_C(1) << 63)

/* A block that is visited may lie within another, whose content looks like a chunk. */
static void
visit_mapped_blocks(uintptr_t start, uintptr_t end, struct visiting *it)
{
    uintptr_t page = plus_page_bytes();
    uint64_t states[PAGES] = {0};

    for (uintptr_t at = start; at < end && it->status == 0; at += page) {
        size_t number = (at - start) / page % PAGES;
        off_t offset = (off_t)(at / page * sizeof *states);

        if (number == 0 && pread(it->pages, states, sizeof states, offset) <= 0) {
            return;
        }
        uintptr_t word = (states[number] & IN_MEMORY) == 0 ? 0 : word_at(at + sizeof at);
        /* glibc 2.43 does not count the chunk's own two words, 2.41 does. */
        uintptr_t bytes = (word & ~FLAGS) % page == 0 ? word & ~FLAGS : (word & ~FLAGS) + GRAIN;

        if ((word & FLAGS) == MAPPED && word_at(at) == 0 && bytes % page == 0 &&
            bytes <= end - at && bytes - GRAIN >= it->least && bytes > GRAIN) {
            it->status = it->visit((const char *)at + GRAIN, bytes - GRAIN, it->arg);
        }
    }
}

/* One line of /proc/self/maps. */
static void
visit_mapping(const char *line, struct visiting *it)
{
    unsigned long start, end, inode;
    char rights[8];
    int path = 0;

    if (sscanf(line, "%lx-%lx %7s %*x %*s %lu %n", &start, &end, rights, &inode, &path) < 4 ||
        strcmp(rights, "rw-p") != 0 || inode != 0) {
        return;
    }
    if (strcmp(line + path, "[heap]") == 0) {
        visit_heap(start, start, end, it);
    }
    else if (line[path] == '\0' || strncmp(line + path, "[anon", 5) == 0) {
        uintptr_t first = (start + THREAD_HEAP - 1) & ~(THREAD_HEAP - 1);
        for (uintptr_t heap = first; heap < end; heap += THREAD_HEAP) {
            visit_thread_heap(heap, end, it);
        }
        visit_mapped_blocks(start, end, it);
    }
}

int
plus_c_blocks_visit(size_t least, int (*visit)(const char *block, size_t bytes, void *arg),
                    void *arg)
{
    struct visiting it = {
        .least = least,
        .pages = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC),
        .visit = visit,
        .arg = arg,
    };
    int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    char text[8192];
    size_t kept = 0;
    ssize_t got;

    while (maps >= 0 && it.status == 0 &&
           (got = read(maps, text + kept, sizeof text - 1 - kept)) > 0) {
        char *line = text, *next;
        text[kept + (size_t)got] = '\0';
        while ((next = strchr(line, '\n')) != NULL) {
            *next = '\0';
            visit_mapping(line, &it);
            line = next + 1;
        }
        kept = strlen(line);
        memmove(text, line, kept);
    }
    if (maps >= 0) {
        close(maps);
    }
    if (it.pages >= 0) {
        close(it.pages);
    }
    return it.status;
}
