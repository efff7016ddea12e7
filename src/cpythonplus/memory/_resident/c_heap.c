/* A heap of glibc is a row of chunks, each with its size in front.  The flag that tells whether a chunk is in use is
 * in the next one.
 *
 *     start                                                                  end
 *     | 8 bytes: of the chunk before | size + flags | block ...      | ... | top |
 *                                      |                               ^
 *                                      +-- size bytes from the chunk's start: the next one, whose flag BEFORE_IN_USE
 *                                          tells of this one
 *
 * So one walk along the sizes tells used from free.  The walk is valid if it ends exactly at `end`.  A size that is no
 * multiple of 16 or leads beyond the end means that another thread has changed the heap, or that its layout is
 * unknown: the result is -EAGAIN, and the caller tries again.  No lock of malloc is taken: the thread that has it may
 * wait for the GIL.
 *
 * All memory is read through the kernel (process_vm_readv), so memory that another thread unmaps meanwhile causes an
 * error and no fault.  Only pages that are in memory are read, because reading would bring released pages back.
 *
 * A chunk in a thread's cache (tcache) has its flag set as if it were in use; from 2.29 on it has a `key` in its
 * second word.  Two blocks that were just freed show this key.  Chunks in a fastbin cannot be told from used ones.
 *
 * Arenas of other threads lie in heaps of 64 MiB.  The first chunk lies behind the arena's own structure, at an offset
 * that depends on the version: each offset is tried until one leads to the end.
 *
 * Rejected: malloc_info(), which tells sums and no addresses; hooks of malloc, gone since 2.34; symbols of the C
 * library, which are stripped. */
#include "c_heap.h"

#include <errno.h>
#include <stdlib.h>

#include "../../_base/memory/own_memory.h"
#include "../../_base/memory/page.h"
#include "pages.h"

#define HEAP_BYTES                                                                                 \
    ((uintptr_t)64 << 20) /* size and alignment of a heap of another arena than the main one */
#define GRAIN ((uintptr_t)16)
#define SMALLEST_CHUNK ((uintptr_t)32)

/* Flags in a chunk's size word. */
#define BEFORE_IN_USE ((uintptr_t)1)
#define MAPPED ((uintptr_t)2)
#define FLAGS ((uintptr_t)7)

#define WORDS_AT_ONCE 2048 /* 16 KiB */

/* ---- reading ------------------------------------------------------------------------------------- */

struct reader {
    const struct plus_pages *pages;
    uintptr_t from;
    size_t count;
    uintptr_t words[WORDS_AT_ONCE];
};

/* Reads the following words, as far as they are in memory: reading would bring released pages back. */
static bool
refill(struct reader *reader, uintptr_t address)
{
    uintptr_t end = plus_page_floor(address) + plus_page_bytes();
    uintptr_t limit = address + sizeof reader->words; /* may be less than a page */

    while (end < reader->pages->end && end < limit && plus_pages_has(reader->pages, end)) {
        end += plus_page_bytes();
    }
    end = end < limit ? end : limit;
    reader->from = address;
    reader->count = (end - address) / sizeof(uintptr_t);
    if (!plus_read_memory(address, reader->words, end - address)) {
        reader->count = 0;
    }
    return reader->count > 0;
}

static bool
read_word(struct reader *reader, uintptr_t address, uintptr_t *word)
{
    if (address < reader->from || address >= reader->from + reader->count * sizeof(uintptr_t)) {
        if (address < reader->pages->start || address >= reader->pages->end ||
            !refill(reader, address)) {
            return false;
        }
    }
    *word = reader->words[(address - reader->from) / sizeof(uintptr_t)];
    return true;
}

/* ---- walking ------------------------------------------------------------------------------------- */

struct chunk {
    uintptr_t start, bytes; /* from the chunk's own two words on */
    bool in_use;
};

static size_t
whole_pages(const struct plus_pages *pages, uintptr_t start, uintptr_t end)
{
    /* The head of a free chunk stays: two words and four links. */
    uintptr_t first = plus_page_ceiling(start + 48);
    uintptr_t last = plus_page_floor(end);

    return first < last ? plus_pages_resident(pages, first, last) : 0;
}

/* free_below: bytes of free chunks since the last chunk that was in use. */
static void
count_chunk(struct plus_c_heap *heap, struct reader *reader, const struct chunk *chunk,
            uintptr_t key, size_t *free_below)
{
    uintptr_t end = chunk->start + chunk->bytes;
    size_t resident = plus_pages_resident(reader->pages, chunk->start, end);

    if (!chunk->in_use) {
        heap->free += resident;
        heap->returnable += whole_pages(reader->pages, chunk->start, end);
        *free_below += resident;
        return;
    }
    uintptr_t word;
    bool cached = key != 0 && read_word(reader, chunk->start + 24, &word) && word == key;
    heap->last[heap->chunks++ % PLUS_C_HEAP_LAST] = (struct plus_c_heap_chunk){
        .start = chunk->start,
        .bytes = chunk->bytes,
        .free_below = *free_below,
        .cached = cached,
    };
    *free_below = 0;
    if (cached) {
        heap->cached += resident;
    }
    else {
        heap->used += resident;
    }
}

/* True if there is a chunk at the address; `bytes` is its length, 0 for the fence at the end of a full heap. */
static bool
read_chunk(struct reader *reader, uintptr_t start, uintptr_t end, uintptr_t *bytes, bool *before)
{
    uintptr_t word;

    if (!read_word(reader, start + sizeof(uintptr_t), &word) || (word & MAPPED) != 0) {
        return false;
    }
    *bytes = word & ~FLAGS;
    *before = (word & BEFORE_IN_USE) != 0;
    return *bytes % GRAIN == 0 && *bytes <= end - start;
}

static int
walk(struct plus_c_heap *heap, struct reader *reader, uintptr_t first, uintptr_t end, uintptr_t key)
{
    struct chunk chunk = {.start = first};
    size_t free_below = 0;
    bool before;

    if (!read_chunk(reader, first, end, &chunk.bytes, &before)) {
        return -EAGAIN;
    }
    heap->used = plus_pages_resident(reader->pages, reader->pages->start, first);
    for (;;) {
        uintptr_t next = chunk.start + chunk.bytes, bytes;
        if (next == end) {
            heap->top = plus_pages_resident(reader->pages, chunk.start, end);
            heap->returnable += whole_pages(reader->pages, chunk.start, end);
            return 0;
        }
        if (chunk.bytes < SMALLEST_CHUNK && chunk.bytes != GRAIN) {
            /* The fence at the end of a heap that was full; nothing follows. */
            bool fence = chunk.bytes == 0 && end - chunk.start <= 4 * GRAIN;
            return fence ? 0 : -EAGAIN;
        }
        if (end - next < GRAIN || !read_chunk(reader, next, end, &bytes, &before)) {
            return -EAGAIN;
        }
        chunk.in_use = before;
        count_chunk(heap, reader, &chunk, key, &free_below);
        chunk = (struct chunk){.start = next, .bytes = bytes};
    }
}

int
plus_c_heap_walk(struct plus_c_heap *heap, uintptr_t start, uintptr_t first, uintptr_t end,
                 uintptr_t key)
{
    struct plus_pages pages;
    struct reader reader = {.pages = &pages};

    *heap = (struct plus_c_heap){0};
    int status = plus_pages_read(&pages, start, end);
    if (status < 0) {
        return status;
    }
    status = walk(heap, &reader, first, end, key);
    plus_pages_free(&pages);
    return status;
}

/* ---- heaps of other arenas ----------------------------------------------------------------------- */

/* The beginning of each such heap (malloc/arena.c, 'heap_info'); newer versions have more fields. */
struct heap_info {
    uintptr_t arena; /* address of the arena; it lies in its first heap, behind this */
    uintptr_t before;
    size_t bytes, writable_bytes;
};

#define LARGEST_INFO ((uintptr_t)256)
#define SMALLEST_ARENA                                                                             \
    ((uintptr_t)1024) /* malloc_state has at least 254 bins: 2200 bytes in 2.36 */
#define LARGEST_ARENA ((uintptr_t)4096)

static bool
info_is_sound(const struct heap_info *info, uintptr_t start, uintptr_t limit)
{
    return info->bytes > LARGEST_ARENA && info->bytes % GRAIN == 0 &&
           info->bytes <= limit - start && info->bytes <= info->writable_bytes &&
           info->writable_bytes <= HEAP_BYTES && info->arena % GRAIN == 0 &&
           info->arena % HEAP_BYTES < LARGEST_INFO && info->arena >= HEAP_BYTES &&
           info->before % HEAP_BYTES == 0;
}

/* The offset of the first chunk depends on the version: it is the one that leads to the end, chunk by chunk. */
int
plus_c_heap_walk_thread(struct plus_c_heap *heap, uintptr_t start, uintptr_t limit, uintptr_t key,
                        uintptr_t *end)
{
    struct heap_info info;
    struct plus_pages pages;

    *heap = (struct plus_c_heap){0};
    if (limit - start < LARGEST_ARENA || !plus_read_memory(start, &info, sizeof info) ||
        !info_is_sound(&info, start, limit)) {
        return -ENOENT;
    }
    bool has_arena = info.arena - start < LARGEST_INFO;
    uintptr_t from = start + (has_arena ? info.arena - start + SMALLEST_ARENA : sizeof info);
    uintptr_t until = start + (has_arena ? LARGEST_ARENA : LARGEST_INFO);
    *end = start + info.bytes;
    int status = plus_pages_read(&pages, start, *end);
    if (status < 0) {
        return status;
    }
    status = -EAGAIN;
    for (uintptr_t first = from; first < until && status != 0; first += GRAIN) {
        struct reader reader = {.pages = &pages};
        *heap = (struct plus_c_heap){0};
        status = walk(heap, &reader, first, *end, key);
    }
    /* Memory behind the page of the last chunk belongs to the heap, too. */
    plus_pages_free(&pages);
    return status;
}

size_t
plus_c_heap_mapped(uintptr_t start, size_t limit)
{
    uintptr_t head[2];

    if (!plus_read_memory(start, head, sizeof head) || head[0] != 0 ||
        (head[1] & FLAGS) != MAPPED) {
        return 0;
    }
    /* The size is in whole pages; from glibc 2.43 on it omits the two words of the head. */
    size_t bytes = head[1] & ~FLAGS, page = plus_page_bytes();
    if (bytes % page == page - GRAIN) {
        bytes += GRAIN;
    }
    return bytes >= page && bytes % page == 0 && bytes <= limit ? bytes : 0;
}

/* ---- checking the layout ------------------------------------------------------------------------- */

/* True if the word in front of a new block is its size, with the word itself, rounded up.  A remainder that is too
 * small for another chunk may be added. */
static bool
size_is_in_front(size_t bytes)
{
    uintptr_t *block = malloc(bytes), word = 0, least = (bytes + 8 + GRAIN - 1) & ~(GRAIN - 1);
    bool read = block != NULL && plus_read_memory((uintptr_t)(block - 1), &word, sizeof word);

    free(block);
    word &= ~FLAGS;
    return read && (word == least || word == least + GRAIN);
}

/* Returns the key.  If two blocks of different sizes that were just freed have the same second word, it is the key.  0:
 * there is none. */
static uintptr_t
find_key(void)
{
    uintptr_t first = 0, second = 0;
    volatile uintptr_t *small = malloc(40), *larger = malloc(200);
    uintptr_t one = (uintptr_t)small, two = (uintptr_t)larger;

    if (small != NULL && larger != NULL) {
        small[1] = 1;
        larger[1] = 2;
    }
    free((void *)small);
    free((void *)larger);
    if (one == 0 || two == 0 || !plus_read_memory(one + 8, &first, sizeof first) ||
        !plus_read_memory(two + 8, &second, sizeof second)) {
        return 0;
    }
    return first == second ? first : 0;
}

/* Another allocator may be loaded, or linked in.  The address of `malloc` does not tell, because it may be an entry of
 * the program for the C library's function. */
bool
plus_c_heap_known(uintptr_t *key)
{
    *key = 0;
    if (!size_is_in_front(200) || !size_is_in_front(1000) || !size_is_in_front(5000)) {
        return false;
    }
    *key = find_key();
    return true;
}
