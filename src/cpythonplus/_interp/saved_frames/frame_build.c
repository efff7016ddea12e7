/* Check captured frames and lay them out as the interpreter's own; frame_capture.h describes a captured frame.
 *
 * A chain that comes from a pickle is compared with the code before any of it is used.  Each value that the code
 * expects must be there and of its kind (operand_kinds.c), the operand stack must have the depth that the bytecode
 * gives it during the call in progress, and a generator in the chain must be the one that the instruction below it
 * asks.  After that only the adopter has the tuples, so the readers below check nothing again.
 *
 * An adopted frame keeps its code object, as a frame of the interpreter does: if the function gets other code meanwhile
 * (a reloader), later calls change and the calls in progress do not.
 *
 * A generator contains its frame.  A generator of a chain is marked as being executed as soon as the chain is adopted,
 * so that asking it for a value gives the same error as the captured one would.  Its frame is filled when the chain
 * goes on.
 */
#include "../frames/pyframe.h"

#include "frame_build.h"

#include "../../_base/raise.h"
#include "../frames/instrumentation.h"
#include "../frames/operand_kinds.h"

#include <internal/pycore_gc.h>
#include <opcode.h>

typedef struct _PyInterpreterFrame Frame;

/* ---- a captured frame ---------------------------------------------------------------------------- */

enum { OWNER, OFFSET, KINDS, VALUES, HANDLED, ITEMS, CODE = ITEMS };

Frame *
plus_generator_frame(PyObject *generator)
{
#if PY_VERSION_HEX >= 0x030E0000
    return plus_pyframe_at(&((PyGenObject *)generator)->gi_iframe);
#else
    return plus_pyframe_at((Frame *)((PyGenObject *)generator)->gi_iframe);
#endif
}

static PyCodeObject *
owners_code(PyObject *owner)
{
    return plus_is_generator(owner) ? plus_pyframe_code(plus_generator_frame(owner))
                                    : (PyCodeObject *)PyFunction_GET_CODE(owner);
}

static int
state_of(PyObject *generator)
{
    return ((PyGenObject *)generator)->gi_frame_state;
}

static void
set_state(PyObject *generator, int state)
{
    ((PyGenObject *)generator)->gi_frame_state = (int8_t)state;
}

/* A generator that is marked as being executed cannot be closed, so its finaliser is skipped. */
void
plus_set_finalised(PyObject *op, bool done)
{
#ifdef Py_GIL_DISABLED
    (void)op, (void)done;
#else
    if (done) {
        _Py_AS_GC(op)->_gc_prev |= _PyGC_PREV_MASK_FINALIZED;
    }
    else {
        _Py_AS_GC(op)->_gc_prev &= ~(uintptr_t)_PyGC_PREV_MASK_FINALIZED;
    }
#endif
}

struct plus_captured
plus_frames_captured(PyObject *frames, Py_ssize_t index)
{
    PyObject *tuple = PyTuple_GET_ITEM(frames, index);
    struct plus_captured item = {.owner = PyTuple_GET_ITEM(tuple, OWNER),
                                 .kinds = PyTuple_GET_ITEM(tuple, KINDS),
                                 .values = PyTuple_GET_ITEM(tuple, VALUES),
                                 .handled = PyTuple_GET_ITEM(tuple, HANDLED)};

    item.function = plus_is_generator(item.owner)
                        ? plus_pyframe_function(plus_generator_frame(item.owner))
                        : item.owner;
    item.code = PyTuple_GET_SIZE(tuple) > CODE ? (PyCodeObject *)PyTuple_GET_ITEM(tuple, CODE)
                                               : owners_code(item.owner);
    item.offset = (int)PyLong_AsLong(PyTuple_GET_ITEM(tuple, OFFSET));
    if (item.offset < 0) {
        item.offset = ~item.offset;
    }
    else {
        item.site = plus_stack_depth_at(item.code, item.offset);
    }
    return item;
}

/* ---- checks -------------------------------------------------------------------------------------- */

static int
bad(const char *why)
{
    PyErr_Format(PyExc_ValueError, "not the frames of a tasklet: %s", why);
    return -1;
}

/* `kinds` and `values` must fit each other. */
static int
check_values(PyObject *kinds, PyObject *values)
{
    Py_ssize_t there = 0, total;

    if (!PyBytes_CheckExact(kinds) || !PyTuple_CheckExact(values)) {
        return bad("kinds are bytes, and values a tuple");
    }
    total = PyTuple_GET_SIZE(values);
    for (Py_ssize_t i = 0; i < PyBytes_GET_SIZE(kinds); i++) {
        char kind = PyBytes_AS_STRING(kinds)[i];
        if (kind != 'o' && kind != 'n' && (kind != 'i' || PY_VERSION_HEX < 0x030E0000)) {
            return bad("a kind of value is unknown");
        }
        if (kind == 'i' && there < total && !PyLong_Check(PyTuple_GET_ITEM(values, there))) {
            return bad("an index is no int");
        }
        there += kind != 'n';
    }
    return there == total ? 0 : bad("values are missing, or too many");
}

/* The variables and the first `operands` operands must have the kinds that the interpreter expects at the instruction
 * at `offset`. */
static int
check_kinds(PyCodeObject *code, int offset, Py_ssize_t operands, PyObject *given, PyObject *values)
{
    const uint8_t *kinds;
    const char *letters = PyBytes_AS_STRING(given);
    Py_ssize_t next = 0, count = code->co_nlocalsplus + operands;
    int depth = plus_stack_kinds(code, offset, &kinds);

    if (depth < 0 || operands < 0 || operands > depth || PyBytes_GET_SIZE(given) != count) {
        return bad("the operand stack is not as deep as the code says");
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *value = letters[i] == 'n' ? NULL : PyTuple_GET_ITEM(values, next++);
        bool indexed = i + 1 < count && letters[i + 1] == 'i';

        if (!plus_kinds_fit(code, kinds[i], letters[i], value, indexed)) {
            PyErr_Format(PyExc_ValueError,
                         "not the frames of a tasklet: %s %zd of %U() at %d is not of its kind",
                         i < code->co_nlocalsplus ? "variable" : "operand",
                         i < code->co_nlocalsplus ? i : i - code->co_nlocalsplus, code->co_qualname,
                         offset);
            return -1;
        }
    }
    return 0;
}

/* Code of the functions whose frames can be built. */
static bool
is_plain(PyCodeObject *code, bool generators)
{
    int kind = code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR);

    return (code->co_flags & CO_OPTIMIZED) != 0 && (code->co_flags & CO_ASYNC_GENERATOR) == 0 &&
           (kind != 0) == generators;
}

static int
check_item(PyObject *tuple)
{
    if (!PyTuple_CheckExact(tuple) || PyTuple_GET_SIZE(tuple) != ITEMS) {
        return bad("each is a tuple of five");
    }
    PyObject *owner = PyTuple_GET_ITEM(tuple, OWNER), *offset = PyTuple_GET_ITEM(tuple, OFFSET);
    PyObject *handled = PyTuple_GET_ITEM(tuple, HANDLED);

    if (!PyFunction_Check(owner) && !plus_is_generator(owner)) {
        return bad("the owner is neither a function nor a generator");
    }
    if (plus_is_generator(owner) && state_of(owner) != FRAME_CREATED) {
        return bad("a generator in it has begun");
    }
    if (!is_plain(owners_code(owner), plus_is_generator(owner))) {
        return bad("the owner's code is of another kind");
    }
    if (!PyLong_CheckExact(offset) || (PyLong_AsLong(offset) == -1 && PyErr_Occurred())) {
        PyErr_Clear();
        return bad("the offset is no int");
    }
    return handled == Py_None || PyExceptionInstance_Check(handled)
               ? check_values(PyTuple_GET_ITEM(tuple, KINDS), PyTuple_GET_ITEM(tuple, VALUES))
               : bad("what is handled is no exception");
}

/* The value at index `place` of localsplus, borrowed; NULL if that place holds none. */
static PyObject *
value_at(const struct plus_captured *item, int place)
{
    Py_ssize_t next = 0;

    for (int i = 0; i < place; i++) {
        next += PyBytes_AS_STRING(item->kinds)[i] != 'n';
    }
    return PyBytes_AS_STRING(item->kinds)[place] == 'o' ? PyTuple_GET_ITEM(item->values, next)
                                                        : NULL;
}

/* The call in progress of `item` must be a call of the frame `inner`, or of C code if `inner` is NULL. */
static int
check_step(PyObject *tuple, const struct plus_captured *item, const struct plus_captured *inner)
{
    bool before = PyLong_AsLong(PyTuple_GET_ITEM(tuple, OFFSET)) < 0;

    if (before &&
        (inner != NULL || plus_is_generator(item->owner) || PY_VERSION_HEX < 0x030C0000)) {
        return bad("one that is between two instructions is not the innermost function");
    }
    if (!before && item->site == NULL) {
        return bad("the instruction in progress is no call");
    }
    if (before && !plus_stack_has_event(item->code, item->offset)) {
        return bad("no function is interrupted there");
    }
    Py_ssize_t operands =
        before ? PyBytes_GET_SIZE(item->kinds) - item->code->co_nlocalsplus : item->site->kept;

    const uint8_t *kinds;

    if (before && plus_stack_kinds(item->code, item->offset, &kinds) != operands) {
        return bad("the operand stack is not as deep as the code says");
    }
    if (check_kinds(item->code, item->offset, operands, item->kinds, item->values) < 0) {
        return -1;
    }
    if (inner != NULL && plus_is_generator(inner->owner) != plus_site_asks(item->site)) {
        return bad("a call of a function is one of a generator");
    }
    if (inner != NULL && plus_is_generator(inner->owner) &&
        value_at(item, item->code->co_nlocalsplus + item->site->base) != inner->owner) {
        return bad("a generator is not the one that is asked");
    }
    if (!before && inner == NULL && item->site->kind == PLUS_SITE_SEND) {
        return bad("nobody is sent to");
    }
    return 0;
}

/* True if the generator of this frame occurs again further in: it would then ask itself for a value. */
static bool
is_there_twice(PyObject *frames, Py_ssize_t index)
{
    PyObject *owner = PyTuple_GET_ITEM(PyTuple_GET_ITEM(frames, index), OWNER);
    bool found = false;

    for (Py_ssize_t i = index + 1; plus_is_generator(owner) && i < PyTuple_GET_SIZE(frames); i++) {
        found |= PyTuple_GET_ITEM(PyTuple_GET_ITEM(frames, i), OWNER) == owner;
    }
    return found;
}

static int
check_all(PyObject *frames)
{
    struct plus_captured inner, item;

    if (!PyTuple_CheckExact(frames) || PyTuple_GET_SIZE(frames) == 0) {
        return bad("there are none");
    }
    for (Py_ssize_t i = PyTuple_GET_SIZE(frames) - 1; i >= 0; i--) {
        if (check_item(PyTuple_GET_ITEM(frames, i)) < 0) {
            return -1;
        }
        item = plus_frames_captured(frames, i);
        if (is_there_twice(frames, i)) {
            return bad("a generator is there twice");
        }
        if (check_step(PyTuple_GET_ITEM(frames, i), &item,
                       i == PyTuple_GET_SIZE(frames) - 1 ? NULL : &inner) < 0) {
            return -1;
        }
        inner = item;
    }
    return plus_is_generator(item.owner) ? bad("the outermost one is a generator") : 0;
}

static PyObject *
with_code(PyObject *tuple, PyCodeObject *code)
{
    PyObject *result = PyTuple_New(ITEMS + 1);

    for (Py_ssize_t i = 0; result != NULL && i < ITEMS; i++) {
        PyTuple_SET_ITEM(result, i, Py_NewRef(PyTuple_GET_ITEM(tuple, i)));
    }
    if (result != NULL) {
        PyTuple_SET_ITEM(result, CODE, Py_NewRef(code));
    }
    return result;
}

PyObject *
plus_frames_adopt(PyObject *frames)
{
    /* 3.11 collects at any allocation: nothing may change after the check. */
    int collects = PyGC_Disable();
    Py_ssize_t count = check_all(frames) < 0 ? -1 : PyTuple_GET_SIZE(frames);
    PyObject *adopted = count < 0 ? NULL : PyTuple_New(count);

    for (Py_ssize_t i = 0; adopted != NULL && i < count; i++) {
        struct plus_captured item = plus_frames_captured(frames, i);
        PyObject *one = with_code(PyTuple_GET_ITEM(frames, i), item.code);

        if (one == NULL || !plus_instrumentation_give_data(item.code)) {
            Py_XDECREF(one);
            Py_CLEAR(adopted);
        }
        else {
            PyTuple_SET_ITEM(adopted, i, one);
        }
    }
    for (Py_ssize_t i = 0; adopted != NULL && i < count; i++) {
        struct plus_captured item = plus_frames_captured(adopted, i);
        if (plus_is_generator(item.owner)) {
            set_state(item.owner, FRAME_EXECUTING);
            plus_set_finalised(item.owner, true);
        }
    }
    if (collects) {
        PyGC_Enable();
    }
    return adopted;
}

PyObject *
plus_frames_as_captured(PyObject *frames, PyObject *error)
{
    /* 3.11 collects at any allocation: nothing may change while frames are read. */
    int collects = PyGC_Disable();
    Py_ssize_t count = PyTuple_GET_SIZE(frames);
    PyObject *captured = PyTuple_New(count);

    for (Py_ssize_t i = 0; captured != NULL && i < count; i++) {
        struct plus_captured item = plus_frames_captured(frames, i);
        PyObject *one = NULL;

        if (PyFunction_GET_CODE(item.function) != (PyObject *)item.code) {
            PyErr_Format(error, "%U() has other code than when its tasklet was loaded",
                         item.code->co_qualname);
        }
        else {
            one = PyTuple_GetSlice(PyTuple_GET_ITEM(frames, i), 0, ITEMS);
        }
        if (one == NULL) {
            Py_CLEAR(captured);
        }
        else {
            PyTuple_SET_ITEM(captured, i, one);
        }
    }
    if (collects) {
        PyGC_Enable();
    }
    return captured;
}

void
plus_frames_abandon(PyObject *frames)
{
    struct plus_raised raised = plus_raised_take();

    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(frames); i++) {
        PyObject *owner = PyTuple_GET_ITEM(PyTuple_GET_ITEM(frames, i), OWNER);

        if (plus_is_generator(owner) && state_of(owner) == FRAME_EXECUTING) {
            set_state(owner, FRAME_CREATED);
            plus_set_finalised(owner, false);
            PyObject *closed = PyObject_CallMethod(owner, "close", NULL);
            Py_XDECREF(closed);
            PyErr_Clear();
        }
    }
    plus_raised_put(raised);
}

/* ---- building ------------------------------------------------------------------------------------ */

static int
size_of(PyCodeObject *code)
{
#if PY_VERSION_HEX >= 0x030C0000
    return code->co_framesize;
#else
    return code->co_nlocalsplus + code->co_stacksize + FRAME_SPECIALS_SIZE;
#endif
}

Frame *
plus_frame_begin(char *room, PyObject *function, PyCodeObject *code)
{
    Frame *frame = (Frame *)room;

#if PY_VERSION_HEX >= 0x030E0000
    _PyFrame_Initialize(PyThreadState_Get(), frame, PyStackRef_FromPyObjectNew(function), NULL,
                        code, 0, NULL);
#elif PY_VERSION_HEX >= 0x030C0000
    _PyFrame_Initialize(frame, (PyFunctionObject *)Py_NewRef(function), NULL, code, 0);
#else
    _PyFrame_InitializeSpecials(frame, (PyFunctionObject *)Py_NewRef(function), NULL,
                                code->co_nlocalsplus);
    /* _PyFrame_InitializeSpecials took the function's code. */
    Py_SETREF(frame->f_code, (PyCodeObject *)Py_NewRef(code));
    for (int i = 0; i < code->co_nlocalsplus; i++) {
        frame->localsplus[i] = NULL;
    }
#endif
    frame->previous = NULL;
    return frame;
}

#define BUILT(frame) PLUS_AT(PLUS_FACT_FRAME_BUILDING, frame)

/* Put a new reference to `value` at `place`. */
static void
put(Frame *frame, Py_ssize_t place, char kind, PyObject *value)
{
#if PY_VERSION_HEX >= 0x030E0000
    BUILT(frame)->localsplus[place] = kind == 'n'   ? PyStackRef_NULL
                                      : kind == 'i' ? PyStackRef_TagInt(PyLong_AsSsize_t(value))
                                                    : PyStackRef_FromPyObjectNew(value);
#else
    BUILT(frame)->localsplus[place] = kind == 'n' ? NULL : Py_NewRef(value);
#endif
}

static void
fill_frame(Frame *frame, PyObject *kinds, PyObject *values)
{
    Py_ssize_t count = PyBytes_GET_SIZE(kinds), next = 0;

    for (Py_ssize_t i = 0; i < count; i++) {
        char kind = PyBytes_AS_STRING(kinds)[i];
        put(frame, i, kind, kind == 'n' ? NULL : PyTuple_GET_ITEM(values, next));
        next += kind != 'n';
    }
#if PY_VERSION_HEX >= 0x030E0000
    BUILT(frame)->stackpointer = frame->localsplus + count;
#else
    BUILT(frame)->stacktop = (int)count;
#endif
}

static _Py_CODEUNIT *
code_start(Frame *frame, PyCodeObject *code)
{
#if PY_VERSION_HEX >= 0x030E0000
    return _PyFrame_GetBytecode(frame);
#else
    return _PyCode_CODE(code);
#endif
}

PyObject *
plus_code_replace(PyObject *code, PyObject *names)
{
    PyObject *replace = names == NULL ? NULL : PyObject_GetAttrString(code, "replace");
    PyObject *none = replace == NULL ? NULL : PyTuple_New(0);
    PyObject *changed = none == NULL ? NULL : PyObject_Call(replace, none, names);

    Py_XDECREF(none);
    Py_XDECREF(replace);
    Py_XDECREF(names);
    return changed;
}

int
plus_first_unit(PyCodeObject *code, int unit)
{
    /* The original bytecode, without specialised instructions. */
    PyObject *bytes = PyCode_GetCode(code);

    while (bytes != NULL && unit > 0 &&
           (unsigned char)PyBytes_AS_STRING(bytes)[2 * (unit - 1)] == EXTENDED_ARG) {
        unit--;
    }
    Py_XDECREF(bytes);
    return unit;
}

void
plus_frame_go_behind(Frame *frame, const struct plus_captured *item, bool at_end)
{
    int unit = (int)sizeof(_Py_CODEUNIT);
    int to_end = at_end && plus_site_asks(item->site) ? item->site->oparg : 0;

#if PY_VERSION_HEX >= 0x030D0000
    frame->instr_ptr = code_start(frame, item->code) + item->site->offset / unit;
    frame->return_offset = (uint16_t)((item->site->next - item->site->offset) / unit + to_end);
#else
    frame->prev_instr = code_start(frame, item->code) + item->site->next / unit - 1;
#if PY_VERSION_HEX >= 0x030C0000
    frame->return_offset = (uint16_t)to_end;
#else
    (void)to_end;
#endif
#endif
}

#if PY_VERSION_HEX < 0x030C0000

void
plus_frame_go_before(Frame *frame, const struct plus_captured *item)
{
    int unit = item->site->offset / (int)sizeof(_Py_CODEUNIT);

    frame->prev_instr = _PyCode_CODE(item->code) + plus_first_unit(item->code, unit) - 1;
    if (item->site->kind == PLUS_SITE_SEND) { /* SEND takes the value to be sent */
        frame->localsplus[frame->stacktop++] = Py_NewRef(Py_None);
    }
}

#endif

size_t
plus_frame_bytes(const struct plus_captured *item)
{
    return plus_is_generator(item->owner) ? 0 : (size_t)size_of(item->code) * sizeof(PyObject *);
}

static void
clear_frame(Frame *frame)
{
#if PY_VERSION_HEX >= 0x030E0000
    ptrdiff_t count = frame->stackpointer - frame->localsplus;
    frame->stackpointer = frame->localsplus;
#else
    int count = frame->stacktop;
    frame->stacktop = 0;
#endif
    for (int i = 0; i < count; i++) {
#if PY_VERSION_HEX >= 0x030E0000
        _PyStackRef old = frame->localsplus[i];
        frame->localsplus[i] = PyStackRef_NULL;
        PyStackRef_XCLOSE(old);
#else
        Py_CLEAR(frame->localsplus[i]);
#endif
    }
}

void
plus_frame_drop(Frame *frame)
{
    clear_frame(frame);
#if PY_VERSION_HEX >= 0x030E0000
    PyStackRef_CLEAR(frame->f_executable);
    PyStackRef_CLEAR(frame->f_funcobj);
#elif PY_VERSION_HEX >= 0x030D0000
    Py_CLEAR(frame->f_executable);
    Py_CLEAR(frame->f_funcobj);
#elif PY_VERSION_HEX >= 0x030C0000
    Py_CLEAR(frame->f_code);
    Py_CLEAR(frame->f_funcobj);
#else
    Py_CLEAR(frame->f_code);
    Py_CLEAR(frame->f_func);
#endif
}

static void
set_handled(PyObject *generator, PyObject *handled)
{
    PyObject **there = &((PyGenObject *)generator)->gi_exc_state.exc_value;

    Py_XSETREF(*there, handled == Py_None ? NULL : Py_NewRef(handled));
}

/* Make the instruction at `offset` the next one to be executed. */
static void
stand_at(Frame *frame, PyCodeObject *code, int offset)
{
#if PY_VERSION_HEX >= 0x030D0000
    frame->instr_ptr = code_start(frame, code) + offset / (int)sizeof(_Py_CODEUNIT);
#else
    frame->prev_instr = code_start(frame, code) + offset / (int)sizeof(_Py_CODEUNIT) - 1;
#endif
}

#if PY_VERSION_HEX >= 0x030C0000
/* The evaluation loop searches the exception table at instr - 1. */
void
plus_frame_raise_at(Frame *frame, const struct plus_captured *item)
{
    stand_at(frame, item->code, item->offset + (int)sizeof(_Py_CODEUNIT));
}
#endif

Frame *
plus_frame_build(const struct plus_captured *item, char *room)
{
    Frame *frame;

    if (plus_is_generator(item->owner)) {
        frame = plus_generator_frame(item->owner);
        clear_frame(frame);
        set_handled(item->owner, item->handled);
        plus_set_finalised(item->owner, false);
    }
    else {
        frame = plus_frame_begin(room, item->function, item->code);
    }
    fill_frame(frame, item->kinds, item->values);
    if (item->site != NULL) {
        plus_frame_go_behind(frame, item, false);
    }
    else {
        stand_at(frame, item->code, item->offset);
    }
    return frame;
}

/* ---- generators ---------------------------------------------------------------------------------- */

PyObject *
plus_generator_make(PyObject *function)
{
    if (!PyFunction_Check(function)) {
        (void)bad("a generator's function is none");
        return NULL;
    }
    PyCodeObject *code = (PyCodeObject *)PyFunction_GET_CODE(function);
    int count = code->co_argcount, named = code->co_kwonlyargcount;
    PyObject *names = NULL, **args, *made = NULL;

    if (!(code->co_flags & (CO_GENERATOR | CO_COROUTINE))) {
        (void)bad("a generator's function makes none");
        return NULL;
    }
    /* A generator expression expects an iterator (up to 3.14) or any iterable (3.15); an iterator serves both. */
    PyObject *none = PyTuple_New(0), *iterable = none == NULL ? NULL : PyObject_GetIter(none);

    args = PyMem_Calloc((size_t)(count + named + 1), sizeof *args);
    names = PyTuple_GetSlice(code->co_localsplusnames, count, count + named);
    if (iterable != NULL && args != NULL && names != NULL) {
        for (int i = 0; i < count + named; i++) {
            args[i] = iterable;
        }
        made = PyObject_Vectorcall(function, args, (size_t)count, named > 0 ? names : NULL);
    }
    PyMem_Free(args);
    Py_XDECREF(none);
    Py_XDECREF(iterable);
    Py_XDECREF(names);
    if (made == NULL && !PyErr_Occurred()) {
        PyErr_NoMemory();
    }
    if (made != NULL && !plus_is_generator(made)) {
        Py_CLEAR(made);
        (void)bad("a generator's function makes none");
    }
    return made;
}

static bool
is_suspended(int state)
{
#if PY_VERSION_HEX >= 0x030D0000
    return state == FRAME_CREATED || FRAME_STATE_SUSPENDED(state);
#else
    return state == FRAME_CREATED || state == FRAME_SUSPENDED;
#endif
}

/* The offset of the next instruction if a generator in this state can be suspended there; else -1. */
static int
goes_on_at(PyCodeObject *code, int offset, int state)
{
    int unit = (int)sizeof(_Py_CODEUNIT);
    int next = PY_VERSION_HEX >= 0x030D0000 ? offset : offset + unit;
    /* The original bytecode, without specialised instructions. */
    PyObject *bytes = PyCode_GetCode(code);
    bool fits = false;

    if (bytes != NULL && next >= unit && next % unit == 0 && next < PyBytes_GET_SIZE(bytes)) {
        unsigned char opcode = (unsigned char)PyBytes_AS_STRING(bytes)[next - unit];

        fits = opcode == (state == FRAME_CREATED ? RETURN_GENERATOR : YIELD_VALUE);
#if PY_VERSION_HEX >= 0x030D0000
        fits = fits && (state == FRAME_CREATED ||
                        state - FRAME_SUSPENDED == PyBytes_AS_STRING(bytes)[next - unit + 1]);
#endif
    }
    Py_XDECREF(bytes);
    return fits ? next : -1;
}

int
plus_generator_restore(PyObject *generator, PyObject *captured)
{
    PyObject *values, *kinds, *handled;
    int offset, state;

    if (!plus_is_generator(generator) || state_of(generator) != FRAME_CREATED) {
        return bad("a generator has begun");
    }
    if (captured == Py_None) {
        PyObject *closed = PyObject_CallMethod(generator, "close", NULL);
        Py_XDECREF(closed);
        return closed == NULL ? -1 : 0;
    }
    if (!PyTuple_Check(captured) ||
        !PyArg_ParseTuple(captured, "iOOOi", &offset, &kinds, &values, &handled, &state)) {
        return PyErr_Occurred() ? -1 : bad("a generator's state is no tuple");
    }
    Frame *frame = plus_generator_frame(generator);
    PyCodeObject *code = plus_pyframe_code(frame);

    if (check_values(kinds, values) < 0) {
        return -1;
    }
    int next = is_suspended(state) ? goes_on_at(code, offset, state) : -1;

    if (next < 0 || (handled != Py_None && !PyExceptionInstance_Check(handled))) {
        return bad("a generator's state does not fit its code");
    }
    /* Resuming the generator pushes one more operand. */
    Py_ssize_t operands = PyBytes_GET_SIZE(kinds) - code->co_nlocalsplus;
    const uint8_t *there;

    if (plus_stack_kinds(code, next, &there) != operands + 1 ||
        check_kinds(code, next, operands, kinds, values) < 0) {
        return PyErr_Occurred() ? -1 : bad("a generator's operand stack is of another depth");
    }
    /* Dropping the old values may run code that asks the generator. */
    set_state(generator, FRAME_EXECUTING);
    clear_frame(frame);
    fill_frame(frame, kinds, values);
#if PY_VERSION_HEX >= 0x030D0000
    frame->instr_ptr = code_start(frame, code) + offset / (int)sizeof(_Py_CODEUNIT);
#else
    frame->prev_instr = code_start(frame, code) + offset / (int)sizeof(_Py_CODEUNIT);
#endif
    set_handled(generator, handled);
    set_state(generator, state);
    return 0;
}
