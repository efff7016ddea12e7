/* Slabs of stacks; see stacks.h for the layout. */
#define _GNU_SOURCE /* madvise */
#include "stacks.h"
#include "switch.h"

#if PLUS_HAS_SWITCH /* else: engine_greenlet.c */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#define UNPOISON(start, bytes) __asan_unpoison_memory_region(start, bytes)
#else
#define UNPOISON(start, bytes) ((void)(start), (void)(bytes))
#endif

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102 /* Linux 6.13 */
#endif

#define PAGE ((size_t)4096)
#define GUARD_BYTES                                                                                \
    ((size_t)64 << 10) /* more than a page: a frame with a big array steps over one */
#define FRAMES_BYTES ((size_t)16 << 10)
#define FRAMES_OFFSET ((size_t)3072) /* in its page: most parked C stacks are shorter than this */
#define SLAB_STACKS 64
#define MPROTECT_GUARDS 8192 /* two mappings each, of the 65,530 that a process may have */
#define KEPT_DIRTY 1024      /* free stacks whose pages are kept */
#define INTACT UINT64_C(0x5afe57ac6b0770f1)

struct plus_slab {
    struct plus_slab *next;
    char *base;
    size_t slot_bytes;
    struct plus_stack stacks[SLAB_STACKS];
};

static size_t mprotect_guards;

static enum plus_guard
make_guard(char *low)
{
    static bool no_guard_install;
    char *start = low - GUARD_BYTES;

    if (!no_guard_install) {
        if (madvise(start, GUARD_BYTES, MADV_GUARD_INSTALL) == 0) {
            return PLUS_GUARD_PAGES;
        }
        no_guard_install = true;
    }
    if (mprotect_guards >= MPROTECT_GUARDS || mprotect(start, GUARD_BYTES, PROT_NONE) != 0) {
        *(uint64_t *)low = INTACT;
        return PLUS_GUARD_WORD;
    }
    mprotect_guards++;
    return PLUS_GUARD_MAPPING;
}

/* Before it is used: a guard takes its share of a page of page tables. */
static void
arm(struct plus_stack *stack)
{
    if (stack->guard == PLUS_GUARD_NONE) {
        stack->guard = make_guard(stack->low);
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
make_stack(struct plus_stack_pool *pool, struct plus_slab *slab, int index, size_t stack_bytes)
{
    struct plus_stack *stack = &slab->stacks[index];
    char *start = slab->base + (size_t)index * slab->slot_bytes;

    stack->low = start + GUARD_BYTES;
    stack->top = stack->low + stack_bytes + FRAMES_OFFSET;
    stack->high = start + slab->slot_bytes;
    stack->slab = slab;
    stack->next = pool->free;
    pool->free = stack;
}

static size_t
slot_bytes_of(const struct plus_stack_pool *pool)
{
    return GUARD_BYTES + ((pool->stack_bytes + PAGE - 1) & ~(PAGE - 1)) + FRAMES_BYTES;
}

/* Without pages and page tables; flags may be MAP_FIXED, over what is there.  NULL: no memory. */
static char *
map_fresh(char *base, size_t bytes, int flags)
{
    char *mapped = mmap(base, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);

    if (mapped == MAP_FAILED) {
        return NULL;
    }
    /* A huge page for a parked tasklet that needs one small page would be 500 times too much. */
    (void)madvise(mapped, bytes, MADV_NOHUGEPAGE);
    return mapped;
}

static bool
add_slab(struct plus_stack_pool *pool)
{
    size_t slot_bytes = slot_bytes_of(pool);
    size_t stack_bytes = slot_bytes - GUARD_BYTES - FRAMES_BYTES;
    struct plus_slab *slab = calloc(1, sizeof(*slab));

    if (slab == NULL) {
        return false;
    }
    slab->slot_bytes = slot_bytes;
    slab->base = map_fresh(NULL, slot_bytes * SLAB_STACKS, 0);
    if (slab->base == NULL) {
        free(slab);
        return false;
    }
    for (int i = SLAB_STACKS - 1; i >= 0; i--) {
        make_stack(pool, slab, i, stack_bytes);
    }
    slab->next = pool->slabs;
    pool->slabs = slab;
    pool->free_count += SLAB_STACKS;
    return true;
}

/* A slab's stacks that are free and of the present size. */
static void
collect_free(struct plus_stack_pool *pool, struct plus_slab *slab)
{
    for (int i = SLAB_STACKS - 1; i >= 0 && slab->slot_bytes == slot_bytes_of(pool); i--) {
        struct plus_stack *stack = &slab->stacks[i];

        if (stack->owner == NULL) {
            stack->next = pool->free;
            pool->free = stack;
            pool->free_count++;
        }
    }
}

/* Free ones of other sizes are left behind until theirs comes again, or the pool is freed. */
void
plus_stacks_resize(struct plus_stack_pool *pool, size_t stack_bytes)
{
    if (stack_bytes != pool->stack_bytes) {
        pool->stack_bytes = stack_bytes;
        pool->free = NULL;
        pool->free_count = 0;
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
    stack->owner = owner;
    arm(stack);
    return stack;
}

bool
plus_stack_intact(const struct plus_stack *stack)
{
    return stack->guard != PLUS_GUARD_WORD || *(const uint64_t *)stack->low == INTACT;
}

/* The word at the low end of one without a guard stays. */
static void
drop_pages(struct plus_stack *stack)
{
    (void)madvise(stack->low + PAGE, (size_t)(stack->high - stack->low) - PAGE, MADV_DONTNEED);
    stack->touched = false;
}

/* Where no stack has to keep its pages, a fresh mapping frees the page tables, too.  False: the process has no
 * mapping left for the moment in which there is one more. */
static bool
drop_slab(struct plus_slab *slab)
{
    if (map_fresh(slab->base, slab->slot_bytes * SLAB_STACKS, MAP_FIXED) == NULL) {
        return false;
    }
    for (int i = 0; i < SLAB_STACKS; i++) {
        forget_guard(&slab->stacks[i]);
        slab->stacks[i].touched = false;
    }
    return true;
}

struct plus_slice *
plus_stack_copy_out(const struct plus_stack *stack, char *low, char *high)
{
    struct plus_slice *slice = malloc(sizeof(*slice) + (size_t)(high - low));

    if (slice != NULL) {
        slice->low = low;
        slice->bytes = (size_t)(high - low);
        UNPOISON(stack->low, (size_t)(stack->high - stack->low));
        memcpy(slice->data, low, slice->bytes);
    }
    return slice;
}

void
plus_stack_put_back(struct plus_stack *stack, struct plus_slice *slice)
{
    arm(stack);
    stack->cold = false;
    UNPOISON(stack->low, (size_t)(stack->high - stack->low));
    memcpy(slice->low, slice->data, slice->bytes);
    free(slice);
}

static size_t
trim_slab(struct plus_slab *slab, bool (*cool)(void *owner, void *arg), void *arg)
{
    size_t cooled = 0;
    int kept = 0, touched = 0;

    for (int i = 0; i < SLAB_STACKS; i++) {
        struct plus_stack *stack = &slab->stacks[i];

        if (stack->owner != NULL && !stack->cold) {
            stack->cold = cool(stack->owner, arg);
            cooled += stack->cold;
            kept += !stack->cold;
        }
        touched += stack->touched;
    }
    if (kept == 0 && touched > 0 && drop_slab(slab)) {
        return cooled;
    }
    for (int i = 0; i < SLAB_STACKS && touched > kept; i++) {
        struct plus_stack *stack = &slab->stacks[i];

        if (stack->touched && (stack->owner == NULL || stack->cold)) {
            drop_pages(stack);
        }
    }
    return cooled;
}

size_t
plus_stacks_trim(struct plus_stack_pool *pool, bool (*cool)(void *owner, void *arg), void *arg)
{
    size_t cooled = 0;

    for (struct plus_slab *slab = pool->slabs; slab != NULL; slab = slab->next) {
        cooled += trim_slab(slab, cool, arg);
    }
    return cooled;
}

void
plus_stack_give(struct plus_stack_pool *pool, struct plus_stack *stack)
{
    if (!plus_stack_intact(stack)) {
        fprintf(stderr, "cpythonplus: a tasklet has overrun its C stack of %zu KiB\n",
                (size_t)(stack->top - stack->low) >> 10);
        abort();
    }
    if (pool->free_count >= KEPT_DIRTY) {
        drop_pages(stack);
    }
    stack->owner = NULL;
    pool->in_use--;
    if (stack->slab->slot_bytes == slot_bytes_of(pool)) { /* else the size was changed since */
        stack->next = pool->free;
        pool->free = stack;
        pool->free_count++;
    }
}

int
plus_stacks_each(struct plus_stack_pool *pool, int (*each)(void *owner, void *arg), void *arg)
{
    for (struct plus_slab *slab = pool->slabs; slab != NULL; slab = slab->next) {
        for (int i = 0; i < SLAB_STACKS; i++) {
            int result = slab->stacks[i].owner != NULL ? each(slab->stacks[i].owner, arg) : 0;

            if (result != 0) {
                return result;
            }
        }
    }
    return 0;
}

void
plus_stacks_free(struct plus_stack_pool *pool)
{
    if (pool->in_use != 0) {
        return;
    }
    for (struct plus_slab *slab = pool->slabs, *next; slab != NULL; slab = next) {
        next = slab->next;
        for (int i = 0; i < SLAB_STACKS; i++) {
            forget_guard(&slab->stacks[i]);
        }
        munmap(slab->base, slab->slot_bytes * SLAB_STACKS);
        free(slab);
    }
    pool->slabs = NULL;
    pool->free = NULL;
    pool->free_count = 0;
}

const struct plus_stack *
plus_stack_guard_hit(const struct plus_stack_pool *pool, const void *address)
{
    const char *at = address;

    for (struct plus_slab *slab = pool->slabs; slab != NULL; slab = slab->next) {
        if (at >= slab->base && at < slab->base + slab->slot_bytes * SLAB_STACKS) {
            const struct plus_stack *stack =
                &slab->stacks[(size_t)(at - slab->base) / slab->slot_bytes];

            return at < stack->low ? stack : NULL;
        }
    }
    return NULL;
}

#endif
