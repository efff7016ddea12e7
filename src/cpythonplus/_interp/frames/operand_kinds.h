/* The kinds that the interpreter expects of a frame's variables and operands before and after each instruction.
 *
 * GIL held; runs no Python code and allocates nothing.
 */
#pragma once

#include "../../_base/compat.h"

/* All kinds from PLUS_KIND_OBJECT on are objects. */
enum plus_kind {
    PLUS_KIND_ANY,  /* an object or NULL */
    PLUS_KIND_NONE, /* NULL */
    PLUS_KIND_OBJECT,
    PLUS_KIND_LIST,
    /* A list of exceptions and None, which the clauses of `except*` have raised. */
    PLUS_KIND_ERRORS,
    PLUS_KIND_SET,
    PLUS_KIND_DICT,
    PLUS_KIND_TUPLE,
    PLUS_KIND_CELL,
    PLUS_KIND_ITERATOR,
    PLUS_KIND_INDEX, /* above an iterator (3.15): NULL, or the position of the `for` */
    PLUS_KIND_OFFSET,
    PLUS_KIND_ERROR,
    PLUS_KIND_ERROR_OR_NONE,
};

/* FOR_ITER has the iterator on the stack, and from 3.15 on its index. */
#define PLUS_FOR_OPERANDS (PY_VERSION_HEX < 0x030F0000 ? 1 : 2)
/* From this version on a PLUS_KIND_OFFSET is a tagged int of kind 'i', before an int object. */
#define PLUS_OFFSETS_ARE_TAGGED 0x030E0000

struct plus_instruction {
    int opcode, oparg;
    int depth, after;   /* of the operand stack before and after it */
    bool begins_errors; /* BUILD_LIST for PLUS_KIND_ERRORS */
};

/* Write the kinds of the function's variables (code->co_nlocalsplus) at its call; the operands' kinds are not
 * changed. */
void
plus_kinds_begin(PyCodeObject *code, uint8_t *kinds);

/* Change the kinds (variables, then operands) from those before the instruction to those after it. */
void
plus_kinds_step(PyCodeObject *code, uint8_t *kinds, const struct plus_instruction *ins);

/* The kind of a value that is of kind `one` or `other`, depending on the way to the instruction. */
uint8_t
plus_kinds_join(uint8_t one, uint8_t other);

/* True if the captured value is of that kind; `given` and `value` as in frame_capture.h, NULL for 'n'. indexed: an
 * index is above the value, so it must be a sequence and not an iterator with a position. */
bool
plus_kinds_fit(PyCodeObject *code, uint8_t kind, char given, PyObject *value, bool indexed);
