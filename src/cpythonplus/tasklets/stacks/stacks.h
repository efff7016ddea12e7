/* C stacks for tasklets, from big mappings, kept for the next one.
 *
 * Knows nothing of Python.  A pool belongs to one thread and is used by it only.  A stack comes with a room for
 * the interpreter's frames above it, so that a parked tasklet's stack and frames share a page:
 *
 *     low address                            top                       high address
 *     |  guard  |  . . .  <-- C stack grows  |  frames grow -->  . . . |
 *                                   |<-- one page -->|
 *
 * What is not touched costs addresses only, so a stack may be as large as a thread's, and its guard wider than any
 * frame that does not probe its pages.  What does cost is page tables: a page of them serves 2 MiB, and a guard of
 * MADV_GUARD_INSTALL has entries in them.  Stacks lie such that the used page of one and the guard of the next
 * above it share one:
 *
 *     2 MiB:  | . . . C stack of n  frames of n | guard of n + 1 |
 *
 * Below PLUS_STACK_BYTES_WIDE they are packed instead, many to a page of page tables, behind narrower guards.
 *
 * A mapping of its own for each stack would run into vm.max_map_count at 32,000 of them; so does an mprotect for
 * each guard.  MADV_GUARD_INSTALL (Linux 6.13) makes guards inside of one mapping.  Without it the first
 * stacks have guards by mprotect, and the others a word at their end that is looked at when they are given back.
 *
 * A stack whose user is parked for long can be made *cold*: what is in use of it is kept elsewhere, without the
 * rest of its pages, and comes back to the same addresses.  The addresses stay reserved meanwhile: 47 bits are
 * enough for 200 million stacks, and lending them to others would need to move those in turn, when the first one
 * wakes up: some cannot be moved.  Page tables are given back as well where they serve cold and free stacks only.
 *
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
    enum plus_guard {
        PLUS_GUARD_NONE,
        PLUS_GUARD_WORD,
        PLUS_GUARD_PAGES,
        PLUS_GUARD_MAPPING
    } guard;
    bool touched; /* may have pages of its own */
    bool settled; /* free, and has no pages but those near its top */
    bool filled;  /* free, and has pages of its last user */
    bool cold;
};

/* What was in use of a cold stack. */
struct plus_slice {
    char *low;
    size_t bytes;
    char data[];
};

struct plus_stack_pool {
    struct plus_stack *free;
    struct plus_slab *slabs;
    struct plus_slab *hand; /* where a sweep begins; NULL: at the first */
    size_t stack_bytes;     /* of stacks made from now on, at least */
    size_t in_use, free_count;
    size_t unsettled, filled; /* free ones, at the head of the list */
    uint64_t settled_ns;
};

#define PLUS_STACK_BYTES_MIN ((size_t)64 << 10)
#define PLUS_STACK_BYTES_WIDE                                                                      \
    ((size_t)256 << 10) /* from here on the guard has 1 MiB, else 64 KiB */
#define PLUS_STACK_BYTES_MAX ((size_t)1 << 30)

/* Stacks made from now on have this size; free ones of another size are not used any more. */
void
plus_stacks_resize(struct plus_stack_pool *pool, size_t stack_bytes);

/* Takes a stack; smaller ones from now on (`stack_bytes` tells) where the address space has no room for that size.
 * NULL when the kernel gives no memory. */
struct plus_stack *
plus_stack_take(struct plus_stack_pool *pool, void *owner);

/* A copy of low <= address < high, both in the stack; NULL when there is no memory.  Freed by put_back. */
struct plus_slice *
plus_stack_copy_out(const struct plus_stack *stack, char *low, char *high);

/* Makes a cold stack usable again, with its slice where it was. */
void
plus_stack_put_back(struct plus_stack *stack, struct plus_slice *slice);

/* Asks cool(owner, arg) for each stack in use that is not cold; where that says true, the owner has copied out
 * what it needs, and the stack is cold from now on.  Gives the pages of cold and of free stacks back to the
 * kernel.  Returns how many have become cold. */
size_t
plus_stacks_trim(struct plus_stack_pool *pool, bool (*cool)(void *owner, void *arg), void *arg);

/* Gives it back: its content is lost at once.  Aborts with a message if it was overrun. */
void
plus_stack_give(struct plus_stack_pool *pool, struct plus_stack *stack);

/* Has free stacks that were used since the last time keep a few pages near their tops only.  To be called when its
 * thread has nothing to do; plus_stack_give() does it now and then. */
void
plus_stacks_settle(struct plus_stack_pool *pool);

/* Calls each(owner, arg) for every stack in use until one returns non-zero, which is returned. */
int
plus_stacks_each(struct plus_stack_pool *pool, int (*each)(void *owner, void *arg), void *arg);

/* Calls each(owner, arg) for the stacks in use, those that this has not come to for longest first, until that says that it is
 * enough, and a little on; gives whether it did. */
bool
plus_stacks_sweep(struct plus_stack_pool *pool, bool (*each)(void *owner, void *arg), void *arg);

/* Unmaps everything; only when no stack is in use (otherwise does nothing). */
void
plus_stacks_free(struct plus_stack_pool *pool);

/* Whether `address` lies in the guard of a stack of any pool; for the SIGSEGV handler: async-signal-safe. */
const struct plus_stack *
plus_stack_guard_hit(const struct plus_stack_pool *pool, const void *address);

#endif
