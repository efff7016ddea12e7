/* One region, from which blocks are taken one behind the other.  A copy lives for seconds and ends as a whole: so small
 * blocks are never used again, and new memory is zero.
 *
 *     region   [ bytes | block ... | bytes | block ... | free ... ]
 *
 * A large block is given back to the kernel when it is freed, which matters for arrays that grow. */
#define _GNU_SOURCE
#include "copy_memory.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ALIGNMENT ((size_t)16)
#define LEAST_REGION ((size_t)16 << 20)
#define LARGE ((size_t)256 << 10)
#define PAGE ((size_t)65536) /* the largest size on any machine */

static struct {
    char *start, *next, *end; /* start is NULL: this is no copy */
} region;

int
plus_copy_memory_begin(size_t most_bytes)
{
    for (size_t bytes = most_bytes & ~(PAGE - 1); bytes >= LEAST_REGION;
         bytes = bytes / 2 & ~(PAGE - 1)) {
        char *start = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

        if (start != MAP_FAILED) {
            region.start = region.next = start;
            region.end = start + bytes;
            return 0;
        }
    }
    return -ENOMEM;
}

static size_t *
size_of(void *block)
{
    return (size_t *)((char *)block - ALIGNMENT);
}

static bool
is_own(const void *block)
{
    return (const char *)block >= region.start && (const char *)block < region.end;
}

static void *
take(size_t bytes)
{
    size_t room = (size_t)(region.end - region.next);

    if (bytes > room || room - bytes < 2 * ALIGNMENT) {
        return NULL;
    }
    char *block = region.next + ALIGNMENT;

    *size_of(block) = bytes;
    region.next = block + ((bytes + ALIGNMENT - 1) & ~(ALIGNMENT - 1));
    return block;
}

static void
give_back(void *block)
{
    size_t bytes = *size_of(block);
    uintptr_t begin = ((uintptr_t)block + PAGE - 1) & ~(PAGE - 1);
    uintptr_t end = ((uintptr_t)block + bytes) & ~(PAGE - 1);

    if (bytes >= LARGE && end > begin) {
        (void)madvise((void *)begin, end - begin, MADV_DONTNEED);
    }
}

void *
plus_malloc(size_t bytes)
{
    return region.start == NULL ? malloc(bytes) : take(bytes);
}

void *
plus_calloc(size_t count, size_t item_bytes)
{
    if (region.start == NULL) {
        return calloc(count, item_bytes);
    }
    return item_bytes > 0 && count > SIZE_MAX / item_bytes ? NULL : take(count * item_bytes);
}

void *
plus_realloc(void *block, size_t bytes)
{
    if (region.start == NULL) {
        return realloc(block, bytes);
    }
    if (block == NULL) {
        return take(bytes);
    }
    if (!is_own(block)) {
        return NULL;
    }
    size_t before = *size_of(block);
    void *larger = bytes <= before ? block : take(bytes);

    if (larger != NULL && larger != block) {
        memcpy(larger, block, before);
        give_back(block);
    }
    return larger;
}

void
plus_free(void *block)
{
    if (region.start == NULL) {
        free(block);
    }
    else if (is_own(block)) {
        give_back(block);
    }
}

/* ---- sorting -------------------------------------------------------------------------------------- */

static uintptr_t
word_at(const char *items, size_t i, size_t item_bytes)
{
    uintptr_t word;

    memcpy(&word, items + i * item_bytes, sizeof word);
    return word;
}

static void
swap(char *a, char *b, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        char kept = a[i];
        a[i] = b[i];
        b[i] = kept;
    }
}

static void
sift(char *items, size_t at, size_t count, size_t item_bytes)
{
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count &&
            word_at(items, child, item_bytes) < word_at(items, child + 1, item_bytes)) {
            child++;
        }
        if (word_at(items, at, item_bytes) >= word_at(items, child, item_bytes)) {
            return;
        }
        swap(items + at * item_bytes, items + child * item_bytes, item_bytes);
    }
}

/* A heap sort: in place. */
void
plus_sort_by_word(void *items, size_t count, size_t item_bytes)
{
    char *all = items;

    for (size_t at = count / 2; at-- > 0;) {
        sift(all, at, count, item_bytes);
    }
    for (size_t left = count; left-- > 1;) {
        swap(all, all + left * item_bytes, item_bytes);
        sift(all, 0, left, item_bytes);
    }
}
