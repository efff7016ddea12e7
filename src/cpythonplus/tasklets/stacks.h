/* C stacks for tasklets, from big mappings, kept for the next one.
 *
 * Knows nothing of Python.  A pool belongs to one thread and is used by it only.  A stack comes with a room for
 * the interpreter's frames above it, so that a parked tasklet's stack and frames share a page:
 *
 *     low address                            top                       high address
 *     |  guard  |  . . .  <-- C stack grows  |  frames grow -->  . . . |
 *                                   |<-- one page -->|
 *
 * A mapping of its own for each stack would run into vm.max_map_count at 32,000 of them; so does an mprotect for
 * each guard.  MADV_GUARD_INSTALL (Linux 6.13) makes guards inside of one mapping.  Without it the first
 * stacks have guards by mprotect, and the others a word at their end that is looked at when they are given back.
 * fork: the child has a copy of all of it.
 */
#ifndef PLUS_TASKLETS_STACKS_H
#define PLUS_TASKLETS_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct plus_slab;

struct plus_stack {
    char *low;               /* first usable byte, above the guard */
    char *top;               /* the C stack begins here and grows down; 16 bytes aligned */
    char *high;              /* end of the room for frames, which begins at top */
    struct plus_stack *next; /* in the pool's list of free ones */
    struct plus_slab *slab;
    void *owner; /* NULL: free */
    bool guarded;
};

struct plus_stack_pool {
    struct plus_stack *free;
    struct plus_slab *slabs;
    size_t stack_bytes; /* of stacks made from now on */
    size_t in_use, free_count;
};

/* Sizes that plus_stack_size_valid accepts. */
#define PLUS_STACK_BYTES_MIN ((size_t)64 << 10)
#define PLUS_STACK_BYTES_MAX ((size_t)1 << 30)

/* Stacks made from now on have this size; free ones of another size are not used any more. */
void
plus_stacks_resize(struct plus_stack_pool *pool, size_t stack_bytes);

/* Takes a stack.  NULL when the kernel gives no memory. */
struct plus_stack *
plus_stack_take(struct plus_stack_pool *pool, void *owner);

/* Gives it back: its content is lost at once.  Aborts with a message if it was overrun. */
void
plus_stack_give(struct plus_stack_pool *pool, struct plus_stack *stack);

/* Calls each(owner, arg) for every stack in use until one returns non-zero, which is returned. */
int
plus_stacks_each(struct plus_stack_pool *pool, int (*each)(void *owner, void *arg), void *arg);

/* Unmaps everything; only when no stack is in use (otherwise does nothing). */
void
plus_stacks_free(struct plus_stack_pool *pool);

/* Whether a stack's last word is still what it was.  Always true for those with a guard. */
bool
plus_stack_intact(const struct plus_stack *stack);

/* Whether `address` lies in the guard of a stack of any pool; for the SIGSEGV handler: async-signal-safe. */
const struct plus_stack *
plus_stack_guard_hit(const struct plus_stack_pool *pool, const void *address);

#endif
