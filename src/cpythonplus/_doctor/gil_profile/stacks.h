/* The Python stacks at which the GIL was given up or waited for, each with its count and its times.
 *
 * A stack is a row, and rows stay until plus_stacks_clear().  Memory is one mapping of a fixed size, whose pages the
 * kernel provides as they are used; so adding a row calls no allocator.  If it is full, further stacks share row 0.
 * A row keeps its code objects alive.
 *
 * All functions are called by a thread that has the GIL, or that is giving it up while no other thread can take it.
 */
#pragma once

#include "../../_base/compat.h"

#include <stdbool.h>
#include <stdint.h>

/* A deeper stack is cut: its innermost frames count. */
#define PLUS_STACK_DEPTH 128u

struct plus_stack_frame {
    PyCodeObject *code;
    int offset; /* of the last instruction, in bytes */
};

struct plus_stack_times {
    uint64_t count, total_ns, longest_ns;
};

struct plus_stack {
    uint64_t hash;
    const struct plus_stack_frame *frames; /* innermost first */
    uint32_t depth;
    bool is_cut;
    struct plus_stack_times times[2]; /* by enum plus_observed */
};

/* Returns 0 or -errno. */
int
plus_stacks_begin(void);

/* Forgets all rows, and releases their memory and their code objects, which may run Python code.  False: out of memory,
 * and nothing was changed. */
bool
plus_stacks_clear(void);

uint32_t
plus_stacks_count(void);

struct plus_stack *
plus_stacks_row(uint32_t number);

/* The row of the calling thread's present stack.  Needs PLUS_FACT_FRAMES.  Runs no Python code, makes no object, and is
 * safe without a current thread state. */
uint32_t
plus_stacks_here(void);
