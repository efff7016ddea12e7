/* Slabs of stacks; see stacks.h for the layout.
 *
 * The life of a stack.  Its thread changes its state; another thread may trim or warm it; always with the GIL held:
 *
 *     free --take()--> in use --give()--> free
 *                      in use --trim(), if cool() agrees--> cold --put_back()--> in use
 *
 *   free      `owner` is NULL.  It is in the pool's list if it has the present size.  Others wait in their slabs until
 *             that size comes again.
 *   in use    It has an owner, and its guard is armed.
 *   cold      It has an owner, and no content: the owner has that as a slice.  The addresses stay reserved.
 *
 * Guards are armed when a stack is taken, not when its slab is made: each needs entries in a page of page tables.
 * There are three kinds, tried in this order: MADV_GUARD_INSTALL; mprotect() for the first stacks of the process; a
 * word at the low end that give() checks.  Whether the first kind works is found out once.  An emulator accepts any
 * advice and does nothing, so the guarded memory is read as a test.
 *
 * trim() goes slab by slab.  First it asks the owners, each of which copies out what it needs before it agrees.  Then
 * it looks for runs of neighbours that are free or cold.  The whole units of TABLE_BYTES in a run are mapped afresh,
 * which frees their page tables; at the edges, whose tables also serve stacks in use, only pages are dropped.  A fresh
 * mapping loses its guards, and dropped pages lose a guard word: those guards are marked as missing, and armed again
 * by take() or put_back().  The guards at the edges stay.
 *
 * Free stacks keep their pages at first, so that the next user has no page faults: *filled*, and *unsettled* until
 * settle() has dropped all but KEPT_BYTES of each.  They are at the front of the list, so nobody walks over the others.
 * When there are more than KEPT_FILLED + DROPPED_AT_ONCE, give() drops all pages of the oldest: the stacks that were
 * given last are taken next.  (Dropping the pages of the stack that is given would be simpler.  But a thread that once
 * had very many tasklets would then drop and fault in the pages of each later one.)
 *
 * All bounds are whole pages, of the kernel's page size: advice for a part of a page fails, or reaches too far.  The
 * guards have 64 KiB and 1 MiB, and the largest pages have 64 KiB.
 *
 * plus_stack_guard_hit() runs in a signal handler.  It only reads the list of slabs: a slab is complete before it is
 * linked, and stays until its pool ends.
 */
#define _GNU_SOURCE /* madvise, syscall */
#include "stacks.h"

#include "../../_base/memory/page.h"
#include "../../_base/process/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#define UNPOISON(start, bytes) __asan_unpoison_memory_region(start, bytes)
#else
#define UNPOISON(start, bytes) ((void)(start), (void)(bytes))
#endif

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102 /* Linux 6.13 */
#endif

#define TABLE_BYTES ((size_t)2 << 20) /* one page of page tables serves this, with pages of 4 KiB */
#define WIDE_GUARD_BYTES ((size_t)1 << 20)
#define PACKED_GUARD_BYTES ((size_t)64 << 10)
#define FRAMES_BYTES ((size_t)16 << 10)
#define FRAMES_OFFSET ((size_t)3072) /* in its page: most parked C stacks are shorter than this */
#define SLAB_STACKS 64
#define FEW_STACKS 8                  /* of a first slab, and if there is no room for more */
#define MPROTECT_GUARDS 16384         /* two mappings each, of the 65,530 that a process may have */
#define KEPT_FILLED 1024              /* free stacks whose pages are kept */
#define DROPPED_AT_ONCE 64            /* number of further ones whose pages are dropped together */
#define KEPT_BYTES ((size_t)64 << 10) /* of each settled stack */
#define SETTLE_EVERY_NS (PLUS_NS_PER_S / 20)
#define SETTLE_AT_REST 16 /* at this many free stacks their pages are dropped before a sleep */
#define INTACT UINT64_C(0x5afe57ac6b0770f1)

struct layout {
    size_t guard_bytes;
    size_t offset; /* of the first stack's low end in its slab */
    size_t stride; /* from one stack to the next */
};

struct plus_slab {
    struct plus_slab *next;
    char *base; /* a multiple of TABLE_BYTES, like its end */
    size_t bytes;
    struct layout layout;
    int count;
    struct plus_stack stacks[];
};

static size_t mprotect_guards;

static size_t
round_up(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

static char *
table_floor(char *at)
{
    return at - (uintptr_t)at % TABLE_BYTES;
}

static struct layout
layout_of(size_t stack_bytes)
{
    size_t room = plus_page_ceiling(stack_bytes + FRAMES_BYTES);

    if (stack_bytes < PLUS_STACK_BYTES_WIDE) {
        return (struct layout){PACKED_GUARD_BYTES, PACKED_GUARD_BYTES, PACKED_GUARD_BYTES + room};
    }
    return (struct layout){WIDE_GUARD_BYTES, TABLE_BYTES,
                           round_up(WIDE_GUARD_BYTES + room, TABLE_BYTES)};
}

/* Makes the kernel itself read there, as abseil's AddressIsReadable does: the set of signals is copied before its use
 * (-1, which does not exist) is checked. */
static bool
is_readable(const char *at)
{
    return syscall(SYS_rt_sigprocmask, -1, at, NULL, sizeof(uint64_t)) == 0 || errno != EFAULT;
}

static bool
install_guard(char *start, size_t bytes)
{
    static enum { UNKNOWN, WORKS, REFUSED } state;

    if (state == REFUSED || madvise(start, bytes, MADV_GUARD_INSTALL) != 0) {
        state = REFUSED;
        return false;
    }
    if (state == UNKNOWN) {
        /* emulators accept any advice and do nothing */
        state = is_readable(start) ? REFUSED : WORKS;
    }
    return state == WORKS;
}

static enum plus_guard
make_guard(char *low, size_t bytes)
{
    char *start = low - bytes;

    if (install_guard(start, bytes)) {
        return PLUS_GUARD_PAGES;
    }
    if (mprotect_guards >= MPROTECT_GUARDS || mprotect(start, bytes, PROT_NONE) != 0) {
        *(uint64_t *)low = INTACT;
        return PLUS_GUARD_WORD;
    }
    mprotect_guards++;
    return PLUS_GUARD_MAPPING;
}

/* Called before a stack is used, not earlier: a guard needs entries in a page of page tables. */
static void
arm(struct plus_stack *stack)
{
    if (stack->guard == PLUS_GUARD_NONE) {
        stack->guard = make_guard(stack->low, stack->slab->layout.guard_bytes);
    }
    stack->touched = true;
}

static void
forget_guard(struct plus_stack *stack)
{
    if (stack->guard == PLUS_GUARD_MAPPING) {
        mprotect_guards--;
    }
    stack->guard = PLUS_GUARD_NONE;
}

static void
make_stack(struct plus_stack_pool *pool, struct plus_slab *slab, int index)
{
    struct plus_stack *stack = &slab->stacks[index];
    const struct layout *layout = &slab->layout;

    stack->low = slab->base + layout->offset + (size_t)index * layout->stride;
    stack->high = stack->low + layout->stride - layout->guard_bytes;
    stack->top = stack->high - FRAMES_BYTES + FRAMES_OFFSET;
    stack->slab = slab;
    stack->settled = true;
    stack->next = pool->free;
    pool->free = stack;
}

static bool
is_of_present_size(const struct plus_stack_pool *pool, const struct plus_slab *slab)
{
    return slab->layout.stride == layout_of(pool->stack_bytes).stride;
}

/* Maps memory without pages and page tables; with MAP_FIXED in `flags`, over the present mapping.  NULL: no memory. */
static char *
map_fresh(char *base, size_t bytes, int flags)
{
    char *mapped = mmap(base, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);

    if (mapped == MAP_FAILED) {
        return NULL;
    }
    /* A huge page would be 500 times too much for a parked tasklet, which needs one small page. */
    (void)madvise(mapped, bytes, MADV_NOHUGEPAGE);
    return mapped;
}

static void
drop_pages(char *start, char *end)
{
    if (start < end) {
        (void)madvise(start, (size_t)(end - start), MADV_DONTNEED);
    }
}

/* Drops pages of free stacks: a stack that was once used to its depth would keep all of them. */
static void
settle(struct plus_stack_pool *pool)
{
    for (struct plus_stack *stack = pool->free; pool->unsettled > 0; stack = stack->next) {
        if (!stack->settled) {
            drop_pages(stack->low + plus_page_bytes(),
                       (char *)plus_page_floor((uintptr_t)(stack->top - KEPT_BYTES)));
            stack->settled = true;
            pool->unsettled--;
        }
    }
    pool->settled_ns = plus_now_coarse_ns();
}

/* Maps at a multiple of TABLE_BYTES; `bytes` is one too. */
static char *
map_aligned(size_t bytes)
{
    char *mapped = map_fresh(NULL, bytes + TABLE_BYTES, 0);

    if (mapped == NULL) {
        return NULL;
    }
    char *base = table_floor(mapped + TABLE_BYTES - 1);
    size_t before = (size_t)(base - mapped);

    if (before > 0) {
        munmap(mapped, before);
    }
    munmap(base + bytes, TABLE_BYTES - before);
    return base;
}

static bool
add_slab_of(struct plus_stack_pool *pool, int count)
{
    struct plus_slab *slab = calloc(1, sizeof(*slab) + (size_t)count * sizeof(slab->stacks[0]));

    if (slab == NULL) {
        return false;
    }
    slab->layout = layout_of(pool->stack_bytes);
    slab->bytes = round_up(slab->layout.offset + (size_t)count * slab->layout.stride, TABLE_BYTES);
    slab->base = map_aligned(slab->bytes);
    if (slab->base == NULL) {
        free(slab);
        return false;
    }
    slab->count = count;
    for (int i = count - 1; i >= 0; i--) {
        make_stack(pool, slab, i);
    }
    slab->next = pool->slabs;
    pool->slabs = slab;
    pool->free_count += (size_t)count;
    return true;
}

/* Adds a slab, the first a small one, since most programs need few stacks; halves the stack size without memory. */
static bool
add_slab(struct plus_stack_pool *pool)
{
    while (!(pool->slabs != NULL && add_slab_of(pool, SLAB_STACKS)) &&
           !add_slab_of(pool, FEW_STACKS)) {
        if (pool->stack_bytes / 2 < PLUS_STACK_BYTES_MIN) {
            return false;
        }
        plus_stacks_resize(pool, pool->stack_bytes / 2);
        if (pool->free != NULL) {
            return true; /* a stack of that size was free */
        }
    }
    return true;
}

/* Adds a slab's free stacks of the present size to the list. */
static void
collect_free(struct plus_stack_pool *pool, struct plus_slab *slab)
{
    for (int i = slab->count - 1; i >= 0 && is_of_present_size(pool, slab); i--) {
        struct plus_stack *stack = &slab->stacks[i];

        if (stack->owner == NULL) {
            stack->next = pool->free;
            pool->free = stack;
            pool->free_count++;
        }
    }
}

/* Free stacks of other sizes stay in their slabs until their size comes again, or the pool is freed. */
void
plus_stacks_resize(struct plus_stack_pool *pool, size_t stack_bytes)
{
    if (stack_bytes != pool->stack_bytes) {
        settle(pool); /* the list is lost, and with it the count of filled stacks */
        for (struct plus_stack *stack = pool->free; stack != NULL; stack = stack->next) {
            stack->filled = false;
        }
        pool->stack_bytes = stack_bytes;
        pool->free = NULL;
        pool->free_count = pool->filled = 0;
        for (struct plus_slab *slab = pool->slabs; slab != NULL; slab = slab->next) {
            collect_free(pool, slab);
        }
    }
}

struct plus_stack *
plus_stack_take(struct plus_stack_pool *pool, void *owner)
{
    struct plus_stack *stack = pool->free;

    if (stack == NULL) {
        if (!add_slab(pool)) {
            return NULL;
        }
        stack = pool->free;
    }
    pool->free = stack->next;
    pool->free_count--;
    pool->in_use++;
    pool->unsettled -= !stack->settled;
    pool->filled -= stack->filled;
    stack->settled = stack->filled = false;
    stack->owner = owner;
    arm(stack);
    return stack;
}

/* Whether its guard word is unchanged. */
static bool
is_intact(const struct plus_stack *stack)
{
    return stack->guard != PLUS_GUARD_WORD || *(const uint64_t *)stack->low == INTACT;
}

/* Drops the content of the stacks `first` to `last` of a slab.  A fresh mapping also frees the page tables, but loses
 * the guards in it; the edges share their tables with stacks in use. */
static void
drop_stacks(struct plus_stack_pool *pool, struct plus_slab *slab, int first, int last)
{
    char *start = first == 0 ? slab->base : slab->stacks[first].low;
    char *end = last == slab->count - 1 ? slab->base + slab->bytes : slab->stacks[last].high;
    char *from = table_floor(start + TABLE_BYTES - 1), *to = table_floor(end);

    /* A fresh mapping fails if the process has no mappings left: it needs two more for a moment. */
    if (from >= to || map_fresh(from, (size_t)(to - from), MAP_FIXED) == NULL) {
        from = to = end;
    }
    drop_pages(start, from);
    drop_pages(to, end);
    for (int i = first; i <= last; i++) {
        struct plus_stack *stack = &slab->stacks[i];
        bool is_gone = stack->low > from && stack->low - slab->layout.guard_bytes < to;

        if (is_gone || stack->guard == PLUS_GUARD_WORD) {
            forget_guard(stack);
        }
        pool->filled -= stack->filled;
        stack->touched = stack->filled = false;
    }
}

struct plus_slice *
plus_stack_copy_out(const struct plus_stack *stack, char *low, char *high)
{
    struct plus_slice *slice = malloc(sizeof(*slice) + (size_t)(high - low));

    if (slice != NULL) {
        slice->low = low;
        slice->bytes = (size_t)(high - low);
        UNPOISON(low, slice->bytes);
        memcpy(slice->data, low, slice->bytes);
    }
    return slice;
}

void
plus_stack_put_back(struct plus_stack *stack, struct plus_slice *slice)
{
    arm(stack);
    stack->cold = false;
    UNPOISON(slice->low, slice->bytes);
    memcpy(slice->low, slice->data, slice->bytes);
    free(slice);
}

static bool
is_idle(const struct plus_stack *stack)
{
    return stack->owner == NULL || stack->cold;
}

static size_t
trim_slab(struct plus_stack_pool *pool, struct plus_slab *slab,
          bool (*cool)(void *owner, void *arg), void *arg)
{
    size_t cooled = 0;

    for (int i = 0; i < slab->count; i++) {
        struct plus_stack *stack = &slab->stacks[i];

        if (!is_idle(stack)) {
            stack->cold = cool(stack->owner, arg);
            cooled += stack->cold;
        }
    }
    for (int first = 0, next; first < slab->count; first = next + 1) {
        bool touched = false;

        for (next = first; next < slab->count && is_idle(&slab->stacks[next]); next++) {
            touched |= slab->stacks[next].touched;
        }
        if (touched) {
            drop_stacks(pool, slab, first, next - 1);
        }
    }
    return cooled;
}

size_t
plus_stacks_trim(struct plus_stack_pool *pool, bool (*cool)(void *owner, void *arg), void *arg)
{
    size_t cooled = 0;

    for (struct plus_slab *slab = pool->slabs; slab != NULL; slab = slab->next) {
        cooled += trim_slab(pool, slab, cool, arg);
    }
    return cooled;
}

static bool
is_settling_due(const struct plus_stack_pool *pool)
{
    return pool->unsettled > 0 && plus_now_coarse_ns() - pool->settled_ns > SETTLE_EVERY_NS;
}

void
plus_stacks_settle(struct plus_stack_pool *pool)
{
    if (pool->unsettled >= SETTLE_AT_REST || is_settling_due(pool)) {
        settle(pool);
    }
}

static void
drop_oldest(struct plus_stack_pool *pool)
{
    size_t newer = 0;

    for (struct plus_stack *stack = pool->free; pool->filled > KEPT_FILLED; stack = stack->next) {
        if (stack->filled && ++newer > KEPT_FILLED) {
            drop_pages(stack->low + plus_page_bytes(), stack->high);
            stack->filled = false;
            pool->filled--;
            pool->unsettled -= !stack->settled;
            stack->settled = true;
        }
    }
}

void
plus_stack_give(struct plus_stack_pool *pool, struct plus_stack *stack)
{
    if (!is_intact(stack)) {
        fprintf(stderr, "cpythonplus: a tasklet has overrun its C stack of %zu KiB\n",
                (size_t)(stack->top - stack->low) >> 10);
        abort();
    }
    stack->owner = NULL;
    pool->in_use--;
    if (!is_of_present_size(pool, stack->slab)) { /* the size was changed meanwhile */
        drop_pages(stack->low + plus_page_bytes(), stack->high);
        stack->settled = true;
        return;
    }
    stack->next = pool->free;
    pool->free = stack;
    pool->free_count++;
    pool->unsettled++;
    pool->filled++;
    stack->filled = true;
    if (pool->filled >= KEPT_FILLED + DROPPED_AT_ONCE) {
        drop_oldest(pool);
    }
    if (is_settling_due(pool)) {
        settle(pool);
    }
}

int
plus_stacks_each(struct plus_stack_pool *pool, int (*each)(void *owner, void *arg), void *arg)
{
    for (struct plus_slab *slab = pool->slabs; slab != NULL; slab = slab->next) {
        for (int i = 0; i < slab->count; i++) {
            int result = slab->stacks[i].owner != NULL ? each(slab->stacks[i].owner, arg) : 0;

            if (result != 0) {
                return result;
            }
        }
    }
    return 0;
}

bool
plus_stacks_sweep(struct plus_stack_pool *pool, bool (*each)(void *owner, void *arg), void *arg)
{
    struct plus_slab *from = pool->hand != NULL ? pool->hand : pool->slabs, *slab = from;
    bool enough = false;

    while (slab != NULL && !enough) {
        for (int i = 0; i < slab->count; i++) {
            enough |= slab->stacks[i].owner != NULL && each(slab->stacks[i].owner, arg);
        }
        slab = slab->next != NULL ? slab->next : pool->slabs;
        pool->hand = slab;
        if (slab == from) {
            break;
        }
    }
    return enough;
}

void
plus_stacks_free(struct plus_stack_pool *pool)
{
    if (pool->in_use != 0) {
        return;
    }
    for (struct plus_slab *slab = pool->slabs, *next; slab != NULL; slab = next) {
        next = slab->next;
        for (int i = 0; i < slab->count; i++) {
            forget_guard(&slab->stacks[i]);
        }
        munmap(slab->base, slab->bytes);
        free(slab);
    }
    pool->slabs = NULL;
    pool->free = NULL;
    pool->free_count = pool->unsettled = pool->filled = 0;
}

const struct plus_stack *
plus_stack_guard_hit(const struct plus_stack_pool *pool, const void *address)
{
    const char *at = address;

    for (struct plus_slab *slab = pool->slabs; slab != NULL; slab = slab->next) {
        const struct layout *layout = &slab->layout;
        const char *first = slab->base + layout->offset - layout->guard_bytes;

        if (at >= first && at < first + (size_t)slab->count * layout->stride) {
            const struct plus_stack *stack = &slab->stacks[(size_t)(at - first) / layout->stride];

            return at < stack->low ? stack : NULL;
        }
    }
    return NULL;
}
