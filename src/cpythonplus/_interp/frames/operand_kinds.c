/* Kinds of variables and operands, instruction by instruction.
 *
 * The interpreter does not check that LIST_APPEND's operand is a list: BUILD_LIST made it.  In a frame from a damaged
 * pickle it may be any object.  So stack_depth.c follows the code from its start, as it does for depths, and this file
 * has the effect of each instruction on the kinds:
 *
 *     default           takes some operands, leaves one object.  The number taken follows from the interpreter's own
 *                       table of effects
 *     leaves none       listed in `leaves_nothing`
 *     all others        a case each: instructions that make a container, a cell, an iterator or an exception, or move
 *                       operands
 *
 * An instruction without a case leaves an object of no special kind, which demands less.  Variables of a program are of
 * no special kind either, as debuggers change variables; a name that begins with a point is the compiler's own. */
#include "operand_kinds.h"

#include <opcode.h>

#define TO_TUPLE 6 /* INTRINSIC_LIST_TO_TUPLE */

static char
first_letter(PyCodeObject *code, int variable)
{
    PyObject *name = PyTuple_GET_ITEM(code->co_localsplusnames, variable);

    return PyUnicode_GET_LENGTH(name) > 0 ? (char)PyUnicode_READ_CHAR(name, 0) : '\0';
}

/* `.0`, the iterable of a generator expression, is an iterator until 3.14; later the expression calls iter() itself. */
static uint8_t
kind_of_argument(PyCodeObject *code, int variable)
{
    PyObject *name = PyTuple_GET_ITEM(code->co_localsplusnames, variable);

    if (first_letter(code, variable) != '.') {
        return PLUS_KIND_OBJECT;
    }
    return PyUnicode_CompareWithASCIIString(name, ".kwdefaults") == 0 ? PLUS_KIND_DICT
           : PyUnicode_CompareWithASCIIString(name, ".0") != 0        ? PLUS_KIND_TUPLE
           : PY_VERSION_HEX < 0x030F0000                              ? PLUS_KIND_ITERATOR
                                                                      : PLUS_KIND_OBJECT;
}

void
plus_kinds_begin(PyCodeObject *code, uint8_t *kinds)
{
    int arguments = code->co_argcount + code->co_kwonlyargcount +
                    ((code->co_flags & CO_VARARGS) != 0) + ((code->co_flags & CO_VARKEYWORDS) != 0);

    for (int i = 0; i < code->co_nlocalsplus; i++) {
        kinds[i] = i < arguments ? kind_of_argument(code, i) : PLUS_KIND_NONE;
    }
}

uint8_t
plus_kinds_join(uint8_t one, uint8_t other)
{
    if (one == other) {
        return one;
    }
    if (one > other) {
        return plus_kinds_join(other, one);
    }
    if (one == PLUS_KIND_ERROR && other == PLUS_KIND_ERROR_OR_NONE) {
        return other;
    }
    if (one == PLUS_KIND_LIST && other == PLUS_KIND_ERRORS) {
        return one;
    }
    bool maybe_none = one <= PLUS_KIND_NONE || one == PLUS_KIND_INDEX || other == PLUS_KIND_INDEX;

    return maybe_none ? PLUS_KIND_ANY : PLUS_KIND_OBJECT;
}

static bool
leaves_nothing(int opcode)
{
    switch (opcode) {
    case CACHE:
    case COPY_FREE_VARS:
    case DELETE_ATTR:
    case DELETE_DEREF:
    case DELETE_FAST:
    case DELETE_GLOBAL:
    case DELETE_NAME:
    case DELETE_SUBSCR:
    case DICT_MERGE:
    case DICT_UPDATE:
    case END_ASYNC_FOR:
    case EXTENDED_ARG:
    case JUMP_BACKWARD:
    case JUMP_BACKWARD_NO_INTERRUPT:
    case JUMP_FORWARD:
    case LIST_APPEND:
    case LIST_EXTEND:
    case MAKE_CELL:
    case MAP_ADD:
    case NOP:
    case POP_EXCEPT:
    case POP_TOP:
    case RAISE_VARARGS:
    case RERAISE:
    case RESUME:
    case RETURN_VALUE:
    case SETUP_ANNOTATIONS:
    case SET_ADD:
    case SET_UPDATE:
    case STORE_ATTR:
    case STORE_DEREF:
    case STORE_FAST:
    case STORE_GLOBAL:
    case STORE_NAME:
    case STORE_SUBSCR:
#if PY_VERSION_HEX < 0x030C0000
    case IMPORT_STAR:
    case JUMP_IF_FALSE_OR_POP:
    case JUMP_IF_TRUE_OR_POP:
    case KW_NAMES:
    case POP_JUMP_BACKWARD_IF_FALSE:
    case POP_JUMP_BACKWARD_IF_NONE:
    case POP_JUMP_BACKWARD_IF_NOT_NONE:
    case POP_JUMP_BACKWARD_IF_TRUE:
    case POP_JUMP_FORWARD_IF_FALSE:
    case POP_JUMP_FORWARD_IF_NONE:
    case POP_JUMP_FORWARD_IF_NOT_NONE:
    case POP_JUMP_FORWARD_IF_TRUE:
    case PRECALL:
    case PRINT_EXPR:
#else
    case END_FOR:
    case POP_JUMP_IF_FALSE:
    case POP_JUMP_IF_NONE:
    case POP_JUMP_IF_NOT_NONE:
    case POP_JUMP_IF_TRUE:
    case STORE_SLICE:
#endif
#if PY_VERSION_HEX >= 0x030C0000 && PY_VERSION_HEX < 0x030D0000
    case KW_NAMES:
#endif
#if PY_VERSION_HEX >= 0x030D0000
    case STORE_FAST_STORE_FAST:
#endif
#if PY_VERSION_HEX >= 0x030E0000
    case NOT_TAKEN:
    case POP_ITER:
#endif
        return true;
    default:
        return false;
    }
}

/* The kind of a variable that has been read: it has a value, or the read has raised an exception. */
static uint8_t
read_variable(uint8_t *kinds, int variable)
{
    if (kinds[variable] <= PLUS_KIND_NONE) {
        kinds[variable] = PLUS_KIND_OBJECT;
    }
    return kinds[variable];
}

static void
write_variable(PyCodeObject *code, uint8_t *kinds, int variable, uint8_t kind)
{
    /* A value that LOAD_FAST_AND_CLEAR has saved is stored again with its kind. */
    bool stays =
        kind <= PLUS_KIND_NONE || kind == PLUS_KIND_CELL || first_letter(code, variable) == '.';

    kinds[variable] = stays ? kind : PLUS_KIND_OBJECT;
}

void
plus_kinds_step(PyCodeObject *code, uint8_t *kinds, const struct plus_instruction *ins)
{
    int oparg = ins->oparg, depth = ins->depth, after = ins->after;
    uint8_t *stack = kinds + code->co_nlocalsplus;
    uint8_t *top = stack + depth - 1; /* top of the stack before the instruction */
    uint8_t first = depth > 0 ? *top : PLUS_KIND_ANY;

    /* The default effect.  At its end a `for` of 3.11 pops its iterator; UNPACK_SEQUENCE may push nothing. */
    bool takes = leaves_nothing(ins->opcode) || (ins->opcode == FOR_ITER && after < depth) ||
                 (ins->opcode == UNPACK_SEQUENCE && oparg == 0);

    if (after > 0 && !takes) {
        stack[after - 1] = PLUS_KIND_OBJECT;
    }
    for (int i = depth; i < after; i++) {
        stack[i] = PLUS_KIND_OBJECT;
    }
    top = stack + after - 1; /* from here on the top after the instruction */
    switch (ins->opcode) {
    /* ---- variables ---- */
    case LOAD_FAST:
#if PY_VERSION_HEX < 0x030D0000
    case LOAD_CLOSURE:
#endif
#if PY_VERSION_HEX >= 0x030C0000
    case LOAD_FAST_CHECK:
#endif
#if PY_VERSION_HEX >= 0x030E0000
    case LOAD_FAST_BORROW:
#endif
        *top = read_variable(kinds, oparg);
        break;
    case STORE_FAST:
        write_variable(code, kinds, oparg, first);
        break;
    case DELETE_FAST:
        kinds[oparg] = PLUS_KIND_NONE;
        break;
    case MAKE_CELL:
        kinds[oparg] = PLUS_KIND_CELL;
        break;
    case COPY_FREE_VARS:
        for (int i = code->co_nlocalsplus - oparg; i < code->co_nlocalsplus; i++) {
            kinds[i] = PLUS_KIND_CELL;
        }
        break;
#if PY_VERSION_HEX >= 0x030C0000
    case LOAD_FAST_AND_CLEAR:
        *top = kinds[oparg];
        kinds[oparg] = PLUS_KIND_NONE;
        break;
#endif
#if PY_VERSION_HEX >= 0x030D0000
    case LOAD_FAST_LOAD_FAST:
#if PY_VERSION_HEX >= 0x030E0000
    case LOAD_FAST_BORROW_LOAD_FAST_BORROW:
#endif
        top[-1] = read_variable(kinds, oparg >> 4);
        *top = read_variable(kinds, oparg & 15);
        break;
    case STORE_FAST_LOAD_FAST:
        write_variable(code, kinds, oparg >> 4, first);
        *top = read_variable(kinds, oparg & 15);
        break;
    case STORE_FAST_STORE_FAST:
        write_variable(code, kinds, oparg >> 4, first);
        write_variable(code, kinds, oparg & 15, stack[depth - 2]);
        break;
#endif
    /* ---- moves -------------------- */
    case COPY:
        *top = stack[depth - oparg];
        break;
    case SWAP:
        *top = stack[depth - oparg];
        stack[depth - oparg] = first;
        break;
    /* ---- containers ---- */
    case BUILD_LIST:
        *top = ins->begins_errors ? PLUS_KIND_ERRORS : PLUS_KIND_LIST;
        break;
    case BUILD_SET:
        *top = PLUS_KIND_SET;
        break;
    case BUILD_MAP:
#if PY_VERSION_HEX < 0x030E0000
    case BUILD_CONST_KEY_MAP:
#endif
        *top = PLUS_KIND_DICT;
        break;
    case BUILD_TUPLE:
        *top = PLUS_KIND_TUPLE;
        break;
    case LOAD_CONST:
        if (PyTuple_CheckExact(PyTuple_GET_ITEM(code->co_consts, oparg))) {
            *top = PLUS_KIND_TUPLE;
        }
        break;
#if PY_VERSION_HEX < 0x030C0000
    case LIST_TO_TUPLE:
        *top = PLUS_KIND_TUPLE;
        break;
#else
    case CALL_INTRINSIC_1:
        if (oparg == TO_TUPLE) {
            *top = PLUS_KIND_TUPLE;
        }
        break;
#endif
    case UNPACK_SEQUENCE:
    case UNPACK_EX:
        if (after >= depth) {
            stack[depth - 1] = PLUS_KIND_OBJECT;
        }
        break;
    /* ---- calls ------------- */
    case PUSH_NULL:
        *top = PLUS_KIND_NONE;
        break;
    case LOAD_GLOBAL: /* the NULL for a call: up to 3.12 below the callable, then above it */
        if (oparg & 1) {
            stack[after - (PY_VERSION_HEX < 0x030D0000 ? 2 : 1)] = PLUS_KIND_NONE;
        }
        break;
#if PY_VERSION_HEX < 0x030C0000
    case LOAD_METHOD:
        top[-1] = PLUS_KIND_ANY;
        break;
#elif PY_VERSION_HEX < 0x030D0000
    case LOAD_ATTR:
    case LOAD_SUPER_ATTR:
        if (oparg & 1) {
            top[-1] = PLUS_KIND_ANY;
        }
        break;
#else
    case LOAD_ATTR:
    case LOAD_SUPER_ATTR:
        if (oparg & 1) {
            top[-1] = PLUS_KIND_OBJECT;
            *top = PLUS_KIND_ANY;
        }
        break;
#endif
#if PY_VERSION_HEX >= 0x030E0000
    case LOAD_SPECIAL:
        top[-1] = PLUS_KIND_OBJECT;
        *top = PLUS_KIND_ANY;
        break;
#else
    case BEFORE_WITH:
    case BEFORE_ASYNC_WITH:
        top[-1] = PLUS_KIND_OBJECT;
        break;
#endif
    /* ---- iteration ---- */
    case GET_ITER:
#if PY_VERSION_HEX >= 0x030F0000
        top[-1] = PLUS_KIND_ITERATOR;
        *top = PLUS_KIND_INDEX;
#else
        *top = PLUS_KIND_ITERATOR;
#endif
        break;
    case FOR_ITER: /* the iterator is not exhausted: the end of the loop is a jump */
        stack[depth - PLUS_FOR_OPERANDS] = PLUS_KIND_ITERATOR;
        break;
    case SEND:
        if (after < depth) { /* 3.11: at the end the receiver has been popped */
            stack[after - 1] = PLUS_KIND_OBJECT;
        }
        break;
#if PY_VERSION_HEX >= 0x030C0000
    case CLEANUP_THROW:
        top[-1] = PLUS_KIND_OBJECT;
        break;
#endif
    /* ---- exceptions ---- */
    case PUSH_EXC_INFO:
        top[-1] = PLUS_KIND_ERROR_OR_NONE;
        *top = PLUS_KIND_ERROR;
        break;
    case CHECK_EG_MATCH:
        top[-1] = PLUS_KIND_ERROR_OR_NONE;
        break;
    default:
        break;
    }
}

static bool
is_error_or_none(PyObject *op)
{
    return op == Py_None || PyExceptionInstance_Check(op);
}

static bool
are_errors(PyObject *list)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
        if (!is_error_or_none(PyList_GET_ITEM(list, i))) {
            return false;
        }
    }
    return true;
}

/* True if it is an int from 0 to `end` - 1. */
static bool
is_within(PyObject *op, Py_ssize_t end)
{
    Py_ssize_t value = PyLong_CheckExact(op) ? PyLong_AsSsize_t(op) : -1;

    PyErr_Clear(); /* overflow */
    return value >= 0 && value < end;
}

static bool
is_iterator(PyObject *op, bool indexed)
{
#if PY_VERSION_HEX >= 0x030F0000
    if (indexed) {
        return Py_TYPE(op)->_tp_iteritem != NULL;
    }
#endif
    return !indexed && PyIter_Check(op);
}

bool
plus_kinds_fit(PyCodeObject *code, uint8_t kind, char given, PyObject *value, bool indexed)
{
    switch (given) {
    case 'n':
        return kind <= PLUS_KIND_NONE || kind == PLUS_KIND_INDEX;
    case 'i':
        if (kind == PLUS_KIND_OFFSET) {
            return PY_VERSION_HEX >= PLUS_OFFSETS_ARE_TAGGED && is_within(value, Py_SIZE(code));
        }
        return kind == PLUS_KIND_INDEX && is_within(value, PY_SSIZE_T_MAX >> 2);
    default:
        break;
    }
    switch (kind) {
    case PLUS_KIND_NONE:
    case PLUS_KIND_INDEX:
        return false;
    case PLUS_KIND_LIST:
        return PyList_CheckExact(value);
    case PLUS_KIND_ERRORS:
        return PyList_CheckExact(value) && are_errors(value);
    case PLUS_KIND_SET:
        return PySet_CheckExact(value);
    case PLUS_KIND_DICT:
        return PyDict_CheckExact(value);
    case PLUS_KIND_TUPLE:
        return PyTuple_CheckExact(value);
    case PLUS_KIND_CELL:
        return PyCell_Check(value);
    case PLUS_KIND_ITERATOR:
        return is_iterator(value, indexed);
    case PLUS_KIND_OFFSET:
        return PY_VERSION_HEX < PLUS_OFFSETS_ARE_TAGGED && is_within(value, Py_SIZE(code));
    case PLUS_KIND_ERROR: /* a raised exception has a traceback */
        return PyExceptionInstance_Check(value) &&
               ((PyBaseExceptionObject *)value)->traceback != NULL;
    case PLUS_KIND_ERROR_OR_NONE:
        return is_error_or_none(value);
    default:
        return true;
    }
}
