/* Objects that are still to be visited, instead of recursion: borrowed, last in, first out.  Makes no object. */
#pragma once

#include "../compat.h"
#include "copy_memory.h"

/* All zero if empty.  The owner frees the items. */
struct plus_object_stack {
    PyObject **items;
    size_t depth, capacity;
};

/* 0, or -ENOMEM. */
static inline int
plus_object_stack_push(struct plus_object_stack *stack, PyObject *op)
{
    PyObject **items =
        plus_room_for_one(stack->items, stack->depth, &stack->capacity, 1024, sizeof *items);

    if (items == NULL) {
        return -ENOMEM;
    }
    stack->items = items;
    stack->items[stack->depth++] = op;
    return 0;
}
