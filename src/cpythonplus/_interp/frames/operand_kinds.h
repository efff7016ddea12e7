/* The kinds that the interpreter takes for granted of a frame's variables and operands, as each instruction leaves them.
 *
 * With the GIL held; runs no Python code and allocates nothing.
 */
#ifndef PLUS_INTERP_OPERAND_KINDS_H
#define PLUS_INTERP_OPERAND_KINDS_H

#include "../../_base/compat.h"

#include <stdint.h>

/* From the second on they are objects. */
enum plus_kind {
    PLUS_KIND_ANY,  /* an object, or nothing */
    PLUS_KIND_NONE, /* nothing */
    PLUS_KIND_OBJECT,
    PLUS_KIND_LIST,
    PLUS_KIND_ERRORS, /* a list of exceptions and None: what the clauses of `except*` have raised */
    PLUS_KIND_SET,
    PLUS_KIND_DICT,
    PLUS_KIND_TUPLE,
    PLUS_KIND_CELL,
    PLUS_KIND_ITERATOR,
    PLUS_KIND_INDEX, /* above an iterator (3.15): nothing, or how far a `for` has got */
    PLUS_KIND_OFFSET,
    PLUS_KIND_ERROR,
    PLUS_KIND_ERROR_OR_NONE,
};

/* FOR_ITER has the iterator on the stack, and from 3.15 on the index that it has come to. */
#define PLUS_FOR_OPERANDS (PY_VERSION_HEX < 0x030F0000 ? 1 : 2)
#define PLUS_OFFSETS_ARE_TAGGED 0x030E0000 /* from there on kind 'i', before an int */

struct plus_instruction {
    int opcode, oparg;
    int depth, after;   /* of the operand stack before it and after it */
    bool begins_errors; /* BUILD_LIST for PLUS_KIND_ERRORS */
};

/* Writes the kinds of the function's variables (code->co_nlocalsplus) when it is called; those of operands stay. */
void
plus_kinds_begin(PyCodeObject *code, uint8_t *kinds);

/* From before the instruction to after it: variables, then operands. */
void
plus_kinds_step(PyCodeObject *code, uint8_t *kinds, const struct plus_instruction *ins);

/* The kind that holds whichever way an instruction is reached. */
uint8_t
plus_kinds_join(uint8_t one, uint8_t other);

/* Whether what was captured is of that kind: `given` and `value` as in frame_capture.h, NULL for 'n'.  indexed: an index is above
 * it, so that it is not asked itself how far it has got. */
bool
plus_kinds_fit(PyCodeObject *code, uint8_t kind, char given, PyObject *value, bool indexed);

#endif
