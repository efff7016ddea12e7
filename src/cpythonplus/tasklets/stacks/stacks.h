/* C stacks for tasklets, carved from large mappings and reused.
 *
 * Nothing here knows of Python.  A pool belongs to one thread and is used only by it.  A stack has room for the
 * interpreter's frames above it, so that a parked tasklet's stack and frames share a page:
 *
 *     low address                          top                  high address
 *     |  guard  |  . . .  <-- C stack grows  |  frames grow -->  . . . |
 *                                  |<-- one page -->|
 *
 * Untouched memory costs only addresses, so a stack may be as large as a thread's, and its guard wider than any frame
 * that does not probe its pages.  Page tables do cost memory: a page of them serves 2 MiB, and a guard of
 * MADV_GUARD_INSTALL has entries in them.  Stacks are placed so that the used page of one and the guard of the next
 * one above it share a page of page tables:
 *
 *     2 MiB:  | . . . C stack of n  frames of n | guard of n + 1 |
 *
 * Stacks below PLUS_STACK_BYTES_WIDE are packed instead, many to a page of page tables, behind narrower guards.
 *
 * A mapping for each stack would reach vm.max_map_count at 32,000 stacks; so would an mprotect for each guard.
 * MADV_GUARD_INSTALL (Linux 6.13) makes guards inside of one mapping.  Without it the first stacks have guards by
 * mprotect, and the others a word at their end that is checked when they are given back.
 *
 * A stack whose user is parked for long can be made *cold*: the used part is copied elsewhere, its pages are freed,
 * and it comes back to the same addresses.  The addresses stay reserved meanwhile: 47 bits are enough for 200 million
 * stacks. Lending them to others would mean moving those when the first user wakes up, and some cannot be moved.  Page
 * tables are freed as well if they serve only cold and free stacks.
 *
 * fork: the child has a copy of everything.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct plus_slab;

struct plus_stack {
    char *low;               /* first usable byte, above the guard */
    char *top;               /* the C stack begins here and grows down; 16 bytes aligned */
    char *high;              /* end of the room for frames, which begins at top */
    struct plus_stack *next; /* in the pool's list of free stacks */
    struct plus_slab *slab;
    void *owner; /* NULL: free */
    enum plus_guard {
        PLUS_GUARD_NONE,
        PLUS_GUARD_WORD,
        PLUS_GUARD_PAGES,
        PLUS_GUARD_MAPPING
    } guard;
    bool touched; /* may have pages of its own */
    bool settled; /* free, and has only pages near its top */
    bool filled;  /* free, and still has pages of its last user */
    bool cold;
};

/* A copy of the used part of a cold stack. */
struct plus_slice {
    char *low;
    size_t bytes;
    char data[];
};

struct plus_stack_pool {
    struct plus_stack *free;
    struct plus_slab *slabs;
    struct plus_slab *hand; /* where the next sweep begins; NULL: at the first slab */
    size_t stack_bytes;     /* minimum size of new stacks */
    size_t in_use, free_count;
    size_t unsettled, filled; /* free stacks, at the head of the list */
    uint64_t settled_ns;
};

#define PLUS_STACK_BYTES_MIN ((size_t)64 << 10)
#define PLUS_STACK_BYTES_WIDE                                                                      \
    ((size_t)256 << 10) /* from this size on the guard has 1 MiB, below it 64 KiB */
#define PLUS_STACK_BYTES_MAX ((size_t)1 << 30)

/* Sets the size of new stacks; free stacks of another size are not used any more. */
void
plus_stacks_resize(struct plus_stack_pool *pool, size_t stack_bytes);

/* Takes a stack.  If the address space has no room for the size, smaller stacks are made from now on (`stack_bytes`
 * tells).  NULL: the kernel gives no memory. */
struct plus_stack *
plus_stack_take(struct plus_stack_pool *pool, void *owner);

/* Copies low <= address < high, both in the stack; NULL: no memory.  put_back frees the copy. */
struct plus_slice *
plus_stack_copy_out(const struct plus_stack *stack, char *low, char *high);

/* Makes a cold stack usable again, with its slice at its old addresses. */
void
plus_stack_put_back(struct plus_stack *stack, struct plus_slice *slice);

/* Calls cool(owner, arg) for each stack in use that is not cold.  If cool() returns true, the owner has copied out
 * what it needs, and the stack becomes cold.  Then the pages of cold and free stacks are freed.  Returns how many have
 * become cold. */
size_t
plus_stacks_trim(struct plus_stack_pool *pool, bool (*cool)(void *owner, void *arg), void *arg);

/* Gives a stack back; its content is lost at once.  Aborts with a message if it was overrun. */
void
plus_stack_give(struct plus_stack_pool *pool, struct plus_stack *stack);

/* Drops the pages of recently used free stacks, except a few near their tops.  Called when the thread has nothing to
 * do; plus_stack_give() does it now and then. */
void
plus_stacks_settle(struct plus_stack_pool *pool);

/* Calls each(owner, arg) for every stack in use until one call returns nonzero; returns that value. */
int
plus_stacks_each(struct plus_stack_pool *pool, int (*each)(void *owner, void *arg), void *arg);

/* Calls each(owner, arg) for the stacks in use, beginning with those that were not visited for longest.  Stops at the
 * end of a slab once a call has returned true; returns whether one did. */
bool
plus_stacks_sweep(struct plus_stack_pool *pool, bool (*each)(void *owner, void *arg), void *arg);

/* Unmaps everything; does nothing if a stack is in use. */
void
plus_stacks_free(struct plus_stack_pool *pool);

/* Returns the stack of the pool whose guard contains `address`, or NULL.  Async-signal-safe, for the SIGSEGV
 * handler. */
const struct plus_stack *
plus_stack_guard_hit(const struct plus_stack_pool *pool, const void *address);
