/* Slabs of stacks; see stacks.h for the layout. */
#define _GNU_SOURCE /* madvise */
#include "stacks.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

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

static bool
guard(char *low)
{
    static bool no_guard_install;
    char *start = low - GUARD_BYTES;

    if (!no_guard_install) {
        if (madvise(start, GUARD_BYTES, MADV_GUARD_INSTALL) == 0) {
            return true;
        }
        no_guard_install = true;
    }
    if (mprotect_guards >= MPROTECT_GUARDS || mprotect(start, GUARD_BYTES, PROT_NONE) != 0) {
        return false;
    }
    mprotect_guards++;
    return true;
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
    stack->guarded = guard(stack->low);
    if (!stack->guarded) {
        *(uint64_t *)stack->low = INTACT;
    }
    stack->next = pool->free;
    pool->free = stack;
}

static size_t
slot_bytes_of(const struct plus_stack_pool *pool)
{
    return GUARD_BYTES + ((pool->stack_bytes + PAGE - 1) & ~(PAGE - 1)) + FRAMES_BYTES;
}

static bool
add_slab(struct plus_stack_pool *pool)
{
    size_t slot_bytes = slot_bytes_of(pool);
    size_t stack_bytes = slot_bytes - GUARD_BYTES - FRAMES_BYTES;
    struct plus_slab *slab = malloc(sizeof(*slab));

    if (slab == NULL) {
        return false;
    }
    slab->slot_bytes = slot_bytes;
    slab->base = mmap(NULL, slot_bytes * SLAB_STACKS, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (slab->base == MAP_FAILED) {
        free(slab);
        return false;
    }
    /* A huge page for a parked tasklet that needs one small page would be 500 times too much. */
    (void)madvise(slab->base, slot_bytes * SLAB_STACKS, MADV_NOHUGEPAGE);
    for (int i = SLAB_STACKS - 1; i >= 0; i--) {
        slab->stacks[i].owner = NULL;
        make_stack(pool, slab, i, stack_bytes);
    }
    slab->next = pool->slabs;
    pool->slabs = slab;
    pool->free_count += SLAB_STACKS;
    return true;
}

/* Free ones of the old size are left behind until the pool is freed. */
void
plus_stacks_resize(struct plus_stack_pool *pool, size_t stack_bytes)
{
    if (stack_bytes != pool->stack_bytes) {
        pool->stack_bytes = stack_bytes;
        pool->free = NULL;
        pool->free_count = 0;
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
    return stack;
}

bool
plus_stack_intact(const struct plus_stack *stack)
{
    return stack->guarded || *(const uint64_t *)stack->low == INTACT;
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
        /* The word at the low end of an unguarded one stays. */
        (void)madvise(stack->low + PAGE, (size_t)(stack->high - stack->low) - PAGE, MADV_DONTNEED);
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
            /* A mapping with PROT_NONE parts is several: they are given back with the rest. */
            if (slab->stacks[i].guarded && mprotect_guards > 0) {
                mprotect_guards--;
            }
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
