/* Objects that are still to be looked at, in place of recursion: borrowed, last in, first out.  It makes no object. */
#ifndef PLUS_BASE_OBJECT_STACK_H
#define PLUS_BASE_OBJECT_STACK_H

#include "compat.h"
#include "copy_memory.h"

#include <errno.h>

/* All zero: empty.  The items are freed by whoever has it. */
struct plus_object_stack {
    PyObject **items;
    size_t depth, capacity;
};

/* 0, or -ENOMEM. */
static inline int
plus_object_stack_push(struct plus_object_stack *stack, PyObject *op)
{
    if (stack->depth == stack->capacity) {
        size_t capacity = stack->capacity > 0 ? 2 * stack->capacity : 1024;
        PyObject **items = plus_realloc(stack->items, capacity * sizeof *items);

        if (items == NULL) {
            return -ENOMEM;
        }
        stack->items = items;
        stack->capacity = capacity;
    }
    stack->items[stack->depth++] = op;
    return 0;
}

#endif
