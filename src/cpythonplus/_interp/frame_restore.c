/* Going on in the middle of functions.
 *
 * The interpreter returns from one Python function to another without leaving its evaluation loop: it takes the frame
 * off, pushes the result on the operand stack of the frame below, and goes on behind the call there.  So a chain of
 * frames goes on by itself once the innermost one is returned to.  A helper does that: a function whose code is
 * `return call()`, which nobody sees, as frames without a RESUME are left out of tracebacks and of f_back.
 *
 *     outermost ... innermost | helper -> C: relink()        built in the room for frames, in this order
 *
 * 1. The frames are built there, as the interpreter would (_PyFrame_Initialize), with their variables, what is on their
 *    operand stacks, and the instruction behind which each goes on.
 * 2. The helper is called, above them.  An evaluation loop begins for it, and it calls relink():
 *
 *     before:  helper -> entry of the loop -> what the thread executed
 *     after:   helper -> innermost -> ... -> outermost -> entry of the loop -> what the thread executed
 *
 * 3. relink() gives the value that the innermost call was waiting for, or raises.  The helper returns it, or is left by
 *    the exception, to the innermost frame.  From here on everything is as if it had never been otherwise: each frame is
 *    taken off by the interpreter, in the order in which room was taken for it, and the outermost one returns from the
 *    loop of step 2.
 *
 * 3.11 clears the first frame of a loop not in the loop but where that was called from, and marks it (is_entry) instead of
 * putting an entry below it.  So there a `floor` is below the outermost frame, which is marked, returns what it gets and
 * owns nothing; and the helper's frame is built here as well.
 *
 * Generators have their frames in themselves.  3.11's loop does not go from one to the other: see the refusal in adopt.
 *
 * Room: the rest of the thread's chunk of frames, or, if that does not do, the operand stack of a second helper whose code
 * asks for so much; the interpreter takes a chunk for it.
 *
 * Rejected: an evaluation function of our own (PEP 523) that fills in each frame when it is called, with a loop for each
 * frame: the C stack grows with the chain, all calls of the process lose their short way meanwhile, and 3.13's optimiser
 * is off for good after it was set.
 *
 * With the GIL held; between step 1 and relink()'s end nothing is allocated but by the call of the helper.
 */
#include "pyframe.h"

#include "frame_restore.h"

#include "frames.h"
#include "pystate.h"
#include "stack_depth.h"

#include <opcode.h>

typedef struct _PyInterpreterFrame Frame;

enum { OWNER, OFFSET, KINDS, VALUES, HANDLED, ITEMS };

/* ---- a captured frame ---------------------------------------------------------------------------- */

struct item {
    PyObject *owner, *function; /* the same, but of a generator */
    PyObject *kinds, *values, *handled;
    PyCodeObject *code;
    int offset;
    const struct plus_call_site *site;
};

static Frame *
generators_frame(PyObject *generator)
{
#if PY_VERSION_HEX >= 0x030E0000
    return plus_pyframe_at(&((PyGenObject *)generator)->gi_iframe);
#else
    return plus_pyframe_at((Frame *)((PyGenObject *)generator)->gi_iframe);
#endif
}

static PyObject *
generators_function(PyObject *generator)
{
    const Frame *frame = generators_frame(generator);

#if PY_VERSION_HEX >= 0x030E0000
    return PyStackRef_AsPyObjectBorrow(frame->f_funcobj);
#elif PY_VERSION_HEX >= 0x030C0000
    return frame->f_funcobj;
#else
    return (PyObject *)frame->f_func;
#endif
}

static bool
is_generator(PyObject *op)
{
    return PyGen_CheckExact(op) || PyCoro_CheckExact(op);
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

/* Of a tuple that was looked at before. */
static struct item
item_at(PyObject *frames, Py_ssize_t index)
{
    PyObject *tuple = PyTuple_GET_ITEM(frames, index);
    struct item item = {.owner = PyTuple_GET_ITEM(tuple, OWNER),
                        .kinds = PyTuple_GET_ITEM(tuple, KINDS),
                        .values = PyTuple_GET_ITEM(tuple, VALUES),
                        .handled = PyTuple_GET_ITEM(tuple, HANDLED)};

    item.function = is_generator(item.owner) ? generators_function(item.owner) : item.owner;
    item.code = (PyCodeObject *)PyFunction_GET_CODE(item.function);
    item.offset = (int)PyLong_AsLong(PyTuple_GET_ITEM(tuple, OFFSET));
    item.site = plus_stack_depth_at(item.code, item.offset);
    return item;
}

/* ---- whether it can go on ------------------------------------------------------------------------ */

static int
bad(const char *why)
{
    PyErr_Format(PyExc_ValueError, "not the frames of a tasklet: %s", why);
    return -1;
}

/* Kinds and values belong together. */
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

/* Variables that are shared with inner functions are cells. */
static int
check_cells(PyCodeObject *code, PyObject *kinds, PyObject *values)
{
    const char *places = PyBytes_AS_STRING(code->co_localspluskinds);
    Py_ssize_t next = 0;

    for (int i = 0; i < code->co_nlocalsplus; i++) {
        bool there = PyBytes_AS_STRING(kinds)[i] == 'o';
        if (PyBytes_AS_STRING(kinds)[i] == 'i') {
            return bad("a variable is an index");
        }
        if ((places[i] & (CO_FAST_CELL | CO_FAST_FREE)) != 0 &&
            (!there || !PyCell_Check(PyTuple_GET_ITEM(values, next)))) {
            return bad("a variable that inner functions share is not in a cell");
        }
        next += there;
    }
    return 0;
}

static int
check_item(PyObject *tuple)
{
    if (!PyTuple_CheckExact(tuple) || PyTuple_GET_SIZE(tuple) != ITEMS) {
        return bad("each is a tuple of five");
    }
    PyObject *owner = PyTuple_GET_ITEM(tuple, OWNER), *offset = PyTuple_GET_ITEM(tuple, OFFSET);
    PyObject *handled = PyTuple_GET_ITEM(tuple, HANDLED);

    if (!PyFunction_Check(owner) && !is_generator(owner)) {
        return bad("the owner is neither a function nor a generator");
    }
    if (is_generator(owner) && state_of(owner) != FRAME_CREATED) {
        return bad("a generator in it has begun");
    }
    if (!PyLong_CheckExact(offset) || (PyLong_AsLong(offset) == -1 && PyErr_Occurred())) {
        PyErr_Clear();
        return bad("the offset is no int");
    }
    return handled == Py_None || PyExceptionInstance_Check(handled)
               ? check_values(PyTuple_GET_ITEM(tuple, KINDS), PyTuple_GET_ITEM(tuple, VALUES))
               : bad("what is handled is no exception");
}

/* The value at a place of localsplus, borrowed; NULL: none. */
static PyObject *
value_at(const struct item *item, int place)
{
    Py_ssize_t next = 0;

    for (int i = 0; i < place; i++) {
        next += PyBytes_AS_STRING(item->kinds)[i] != 'n';
    }
    return PyBytes_AS_STRING(item->kinds)[place] == 'o' ? PyTuple_GET_ITEM(item->values, next)
                                                        : NULL;
}

/* What is called in `item` is `inner`, NULL: C code. */
static int
check_step(const struct item *item, const struct item *inner)
{
    if (item->site == NULL) {
        return bad("the instruction in progress is no call");
    }
    if (PyBytes_GET_SIZE(item->kinds) != item->code->co_nlocalsplus + item->site->kept) {
        return bad("the operand stack is not as deep as the code says");
    }
    if (inner != NULL && is_generator(inner->owner) != (item->site->kind != PLUS_SITE_CALL)) {
        return bad("a call of a function is one of a generator");
    }
    if (inner != NULL && is_generator(inner->owner) &&
        value_at(item, item->code->co_nlocalsplus + item->site->base) != inner->owner) {
        return bad("a generator is not the one that is asked");
    }
    if (inner == NULL && item->site->kind == PLUS_SITE_SEND) {
        return bad("nobody is sent to");
    }
    return check_cells(item->code, item->kinds, item->values);
}

int
plus_frames_adopt(PyObject *frames)
{
    struct item inner, item;

    if (!PyTuple_CheckExact(frames) || PyTuple_GET_SIZE(frames) == 0) {
        return bad("there are none");
    }
    for (Py_ssize_t i = PyTuple_GET_SIZE(frames) - 1; i >= 0; i--) {
        if (check_item(PyTuple_GET_ITEM(frames, i)) < 0) {
            return -1;
        }
        item = item_at(frames, i);
        if (check_step(&item, i == PyTuple_GET_SIZE(frames) - 1 ? NULL : &inner) < 0) {
            return -1;
        }
        inner = item;
    }
    if (is_generator(item.owner)) {
        return bad("the outermost one is a generator");
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(frames); i++) {
        item = item_at(frames, i);
        if (is_generator(item.owner)) {
            set_state(item.owner, FRAME_EXECUTING);
        }
    }
    return 0;
}

void
plus_frames_abandon(PyObject *frames)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(frames); i++) {
        PyObject *owner = PyTuple_GET_ITEM(PyTuple_GET_ITEM(frames, i), OWNER);

        if (is_generator(owner) && state_of(owner) == FRAME_EXECUTING) {
            set_state(owner, FRAME_CREATED);
            PyObject *closed = PyObject_CallMethod(owner, "close", NULL);
            Py_XDECREF(closed);
            PyErr_Clear();
        }
    }
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

/* As for a call of the function that has not begun, without variables. */
static void
begin_frame(Frame *frame, PyObject *function, PyCodeObject *code)
{
#if PY_VERSION_HEX >= 0x030E0000
    _PyFrame_Initialize(PyThreadState_Get(), frame, PyStackRef_FromPyObjectNew(function), NULL,
                        code, 0, NULL);
#elif PY_VERSION_HEX >= 0x030C0000
    _PyFrame_Initialize(frame, (PyFunctionObject *)Py_NewRef(function), NULL, code, 0);
    frame->previous = NULL;
#else
    (void)code;
    _PyFrame_InitializeSpecials(frame, (PyFunctionObject *)Py_NewRef(function), NULL,
                                code->co_nlocalsplus);
    frame->previous = NULL;
#endif
}

/* Takes a reference to the value. */
static void
put(Frame *frame, Py_ssize_t place, char kind, PyObject *value)
{
#if PY_VERSION_HEX >= 0x030E0000
    frame->localsplus[place] = kind == 'n'   ? PyStackRef_NULL
                               : kind == 'i' ? PyStackRef_TagInt(PyLong_AsSsize_t(value))
                                             : PyStackRef_FromPyObjectNew(value);
#else
    frame->localsplus[place] = kind == 'n' ? NULL : Py_NewRef(value);
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
    frame->stackpointer = frame->localsplus + count;
#else
    frame->stacktop = (int)count;
#endif
}

static _Py_CODEUNIT *
code_start(Frame *frame, PyCodeObject *code)
{
#if PY_VERSION_HEX >= 0x030E0000
    (void)code;
    return _PyFrame_GetBytecode(frame);
#else
    (void)frame;
    return _PyCode_CODE(code);
#endif
}

/* Where a function that returns to the frame goes on: `end` is where a generator does that has ended. */
static void
set_position(Frame *frame, const struct item *item, bool end)
{
    int unit = (int)sizeof(_Py_CODEUNIT);
    int to_end = end ? item->site->oparg : 0;

#if PY_VERSION_HEX >= 0x030D0000
    frame->instr_ptr = code_start(frame, item->code) + item->site->offset / unit;
    frame->return_offset =
        (uint16_t)((item->site->next - item->site->offset) / unit + to_end);
#else
    frame->prev_instr = code_start(frame, item->code) + item->site->next / unit - 1;
#if PY_VERSION_HEX >= 0x030C0000
    frame->return_offset = (uint16_t)to_end;
#else
    (void)to_end;
#endif
#endif
}

struct chain {
    PyObject *frames; /* the tuple; owned */
    PyObject *handled;
    Py_ssize_t count;
    Frame *outermost, *innermost;
    int built;      /* frames so far */
    bool is_linked; /* the interpreter has them */
    PyObject *(*give)(void *);
    void *arg;
#if PY_VERSION_HEX < 0x030C0000
    Frame *floor;
#endif
};

/* Bytes of room for a frame; a generator has its own. */
static size_t
room_of(const struct item *item)
{
    return is_generator(item->owner) ? 0 : (size_t)size_of(item->code) * sizeof(PyObject *);
}

/* Builds all at `room`; returns its end. */
static char *
build(struct chain *chain, char *room)
{
    Frame *outer = NULL;

    for (Py_ssize_t i = 0; i < chain->count; i++) {
        struct item item = item_at(chain->frames, i);
        Frame *frame = is_generator(item.owner) ? generators_frame(item.owner) : (Frame *)room;

        if (!is_generator(item.owner)) {
            begin_frame(frame, item.function, item.code);
            fill_frame(frame, item.kinds, item.values);
        }
        set_position(frame, &item, i < chain->count - 1 && item.site->kind != PLUS_SITE_CALL);
        room += room_of(&item);
        frame->previous = outer;
        chain->outermost = outer == NULL ? frame : chain->outermost;
        outer = frame;
    }
    chain->innermost = outer;
    return room;
}

/* ---- generators ---------------------------------------------------------------------------------- */

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
    args = PyMem_Calloc((size_t)(count + named + 1), sizeof *args);
    names = PyTuple_GetSlice(code->co_localsplusnames, count, count + named);
    if (args != NULL && names != NULL) {
        for (int i = 0; i < count + named; i++) {
            args[i] = Py_None;
        }
        made = PyObject_Vectorcall(function, args, (size_t)count, named > 0 ? names : NULL);
    }
    PyMem_Free(args);
    Py_XDECREF(names);
    if (made == NULL && !PyErr_Occurred()) {
        PyErr_NoMemory();
    }
    if (made != NULL && !is_generator(made)) {
        Py_CLEAR(made);
        (void)bad("a generator's function makes none");
    }
    return made;
}

static void
set_handled(PyObject *generator, PyObject *handled)
{
    PyObject **there = &((PyGenObject *)generator)->gi_exc_state.exc_value;

    Py_XSETREF(*there, handled == Py_None ? NULL : Py_NewRef(handled));
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

int
plus_generator_restore(PyObject *generator, PyObject *captured)
{
    PyObject *values, *kinds, *handled, *function;
    int offset, state;

    if (!is_generator(generator) || state_of(generator) != FRAME_CREATED) {
        return bad("a generator has begun");
    }
    if (captured == Py_None) {
        PyObject *closed = PyObject_CallMethod(generator, "close", NULL);
        Py_XDECREF(closed);
        return closed == NULL ? -1 : 0;
    }
    if (!PyTuple_Check(captured) ||
        !PyArg_ParseTuple(captured, "OiOOOi", &function, &offset, &kinds, &values, &handled,
                          &state)) {
        return PyErr_Occurred() ? -1 : bad("a generator's state is no tuple");
    }
    Frame *frame = generators_frame(generator);
    PyCodeObject *code = plus_pyframe_code(frame);

    if (check_values(kinds, values) < 0) {
        return -1;
    }
    if (function != generators_function(generator) || !is_suspended(state) || offset < -2 ||
        offset / (int)sizeof(_Py_CODEUNIT) >= Py_SIZE(code) ||
        PyBytes_GET_SIZE(kinds) < code->co_nlocalsplus ||
        PyBytes_GET_SIZE(kinds) > code->co_nlocalsplus + code->co_stacksize ||
        (handled != Py_None && !PyExceptionInstance_Check(handled))) {
        return bad("a generator is none of its function");
    }
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

/* ---- going on ------------------------------------------------------------------------------------ */

#define HELPER "def helper(call):\n    return call()\n"

/* NOPs instead, for its cache entries too (3.15). */
static void
without_resume(char *bytes, Py_ssize_t size)
{
    bool inside = false;

    for (Py_ssize_t i = 0; i < size; i += 2) {
        inside = (unsigned char)bytes[i] == RESUME || (inside && bytes[i] == CACHE);
        if (inside) {
            bytes[i] = NOP;
            bytes[i + 1] = 0;
        }
    }
}

/* A new function `return call()` whose frames are left out of what programs see, with room for so many operands. */
static PyObject *
make_helper(int operands)
{
    PyObject *globals = PyDict_New(), *module, *done, *function, *names, *bytes, *code;
    PyObject *result = NULL;

    module = globals == NULL ? NULL : Py_CompileString(HELPER, "<cpythonplus>", Py_file_input);
    done = module == NULL ? NULL : PyEval_EvalCode(module, globals, globals);
    function = done == NULL ? NULL : Py_XNewRef(PyDict_GetItemString(globals, "helper"));
    code = function == NULL ? NULL : PyFunction_GET_CODE(function);
    bytes = code == NULL ? NULL : PyCode_GetCode((PyCodeObject *)code);
    if (bytes != NULL) {
        Py_SETREF(bytes, PyBytes_FromStringAndSize(PyBytes_AS_STRING(bytes),
                                                   PyBytes_GET_SIZE(bytes)));
    }
    if (bytes != NULL) {
        without_resume(PyBytes_AS_STRING(bytes), PyBytes_GET_SIZE(bytes));
        names = Py_BuildValue("{sOsi}", "co_code", bytes, "co_stacksize",
                              ((PyCodeObject *)code)->co_stacksize + operands);
        PyObject *replace = PyObject_GetAttrString(code, "replace");
        PyObject *none = PyTuple_New(0);
        PyObject *changed = names == NULL || replace == NULL || none == NULL
                                ? NULL
                                : PyObject_Call(replace, none, names);
        result = changed == NULL ? NULL : PyFunction_New(changed, globals);
        Py_XDECREF(changed);
        Py_XDECREF(none);
        Py_XDECREF(replace);
        Py_XDECREF(names);
    }
    if (globals != NULL) {
        PyDict_Clear(globals);
    }
    Py_XDECREF(bytes);
    Py_XDECREF(function);
    Py_XDECREF(done);
    Py_XDECREF(module);
    Py_XDECREF(globals);
    return result;
}

static PyObject *
helper(void)
{
    static PyObject *made; /* kept for good */

    if (made == NULL) {
        made = make_helper(0);
    }
    return made;
}

/* As the interpreter does where it goes on with a generator. */
static void
execute_generator(PyThreadState *tstate, const struct item *item)
{
    PyGenObject *gen = (PyGenObject *)item->owner;

    clear_frame(generators_frame(item->owner));
    fill_frame(generators_frame(item->owner), item->kinds, item->values);
    set_handled(item->owner, item->handled);
    gen->gi_exc_state.previous_item = PLUS_TSTATE(tstate)->exc_info;
    PLUS_TSTATE(tstate)->exc_info = &gen->gi_exc_state;
}

static void
link_generators(struct chain *chain, PyThreadState *tstate)
{
    for (Py_ssize_t i = 0; i < chain->count; i++) {
        struct item item = item_at(chain->frames, i);
        if (is_generator(item.owner)) {
            execute_generator(tstate, &item);
        }
    }
}

static void
link_frames(struct chain *chain, Frame *top)
{
#if PY_VERSION_HEX >= 0x030C0000
    chain->outermost->previous = top->previous;
#else
    chain->floor->previous = top->previous;
    chain->floor->is_entry = true;
    chain->outermost->previous = chain->floor;
    top->is_entry = false;
#endif
    top->previous = chain->innermost;
}

/* Step 3: called by the helper. */
static PyObject *
relink(PyObject *capsule, PyObject *ignored)
{
    struct chain *chain = PyCapsule_GetPointer(capsule, NULL);
    PyThreadState *tstate = PyThreadState_Get();

    (void)ignored;
    if (chain == NULL || chain->is_linked) {
        PyErr_SetString(PyExc_SystemError, "frames are linked once");
        return NULL;
    }
    chain->is_linked = true;
    link_frames(chain, plus_pyframe_top(tstate));
    plus_pystate_deepen(tstate, (int)chain->count);
    if (chain->handled != NULL) {
        Py_XSETREF(PLUS_TSTATE(tstate)->exc_info->exc_value, chain->handled);
        chain->handled = NULL;
    }
    link_generators(chain, tstate);
    Py_CLEAR(chain->frames); /* the frames have their own references */
    return chain->give(chain->arg);
}

static PyMethodDef relink_method = {"relink", relink, METH_NOARGS, NULL};

/* What was built and has not been linked. */
static void
drop(struct chain *chain)
{
    for (Frame *frame = chain->innermost, *outer; frame != NULL; frame = outer) {
        outer = frame->previous;
        if (frame->owner != FRAME_OWNED_BY_THREAD) {
            frame->previous = NULL;
            continue;
        }
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
    plus_frames_abandon(chain->frames);
}

#if PY_VERSION_HEX < 0x030C0000

/* The first frame of a loop, and what is below the outermost one: at `room`.  Returns the end. */
static char *
build_floor(struct chain *chain, char *room, PyObject *function)
{
    PyCodeObject *code = (PyCodeObject *)PyFunction_GET_CODE(function);
    Frame *frame = (Frame *)room;

    begin_frame(frame, function, code);
    frame->localsplus[0] = NULL;
    /* Its last instruction returns. */
    frame->prev_instr = _PyCode_CODE(code) + Py_SIZE(code) - 2;
    chain->floor = frame;
    return room + (size_t)size_of(code) * sizeof(PyObject *);
}

static PyObject *
call_helper(struct chain *chain, PyObject *function, PyObject *callable, char *room)
{
    PyThreadState *tstate = PyThreadState_Get();
    PyCodeObject *code = (PyCodeObject *)PyFunction_GET_CODE(function);
    Frame *frame = (Frame *)room, *floor = chain->floor;

    begin_frame(frame, function, code);
    frame->localsplus[0] = Py_NewRef(callable);
    plus_pystate_set_frames_top(tstate, room + (size_t)size_of(code) * sizeof(PyObject *));
    PyObject *result = _PyEval_EvalFrameDefault(tstate, frame, 0);

    if (!chain->is_linked) { /* it was the first of its loop */
        clear_frame(frame);
        Py_CLEAR(frame->f_func);
        Py_CLEAR(frame->f_code);
    }
    Py_CLEAR(floor->f_func);
    Py_CLEAR(floor->f_code);
    return result;
}

static size_t
extra_room(PyObject *function)
{
    return 2 * (size_t)size_of((PyCodeObject *)PyFunction_GET_CODE(function)) * sizeof(PyObject *);
}

#else

static PyObject *
call_helper(struct chain *chain, PyObject *function, PyObject *callable, char *room)
{
    (void)chain;
    plus_pystate_set_frames_top(PyThreadState_Get(), room);
    return PyObject_CallOneArg(function, callable);
}

#define extra_room(function) ((size_t)0)

#endif

/* Steps 1 and 2, at `room`. */
static PyObject *
go_on_at(struct chain *chain, char *room)
{
    PyThreadState *tstate = PyThreadState_Get();
    PyObject *function = helper(), *result = NULL;
    PyObject *capsule = function == NULL ? NULL : PyCapsule_New(chain, NULL, NULL);
    PyObject *callable = capsule == NULL ? NULL : PyCFunction_New(&relink_method, capsule);
    char *top = plus_pystate_frames_top(tstate);

    if (callable != NULL) {
#if PY_VERSION_HEX < 0x030C0000
        room = build_floor(chain, room, function);
#endif
        room = build(chain, room);
        result = call_helper(chain, function, callable, room);
        if (!chain->is_linked) {
            drop(chain);
        }
        plus_pystate_set_frames_top(tstate, top);
    }
    Py_XDECREF(callable);
    Py_XDECREF(capsule);
    return result;
}

static size_t
room_for(const struct chain *chain, PyObject *function)
{
    size_t bytes = extra_room(function);

    for (Py_ssize_t i = 0; i < chain->count; i++) {
        struct item item = item_at(chain->frames, i);
        bytes += room_of(&item);
    }
    return bytes;
}

/* Called by a helper with much room on its operand stack. */
static PyObject *
go_on_inside(PyObject *capsule, PyObject *ignored)
{
    struct chain *chain = PyCapsule_GetPointer(capsule, NULL);
    Frame *frame = plus_pyframe_top(PyThreadState_Get());

    (void)ignored;
    if (chain == NULL) {
        return NULL;
    }
    /* Its own operands are at the bottom. */
    return go_on_at(chain, (char *)(frame->localsplus + 16));
}

static PyMethodDef inside_method = {"inside", go_on_inside, METH_NOARGS, NULL};

static PyObject *
go_on_with_room(struct chain *chain, size_t bytes)
{
    PyObject *function = make_helper((int)(bytes / sizeof(PyObject *)) + 32);
    PyObject *capsule = function == NULL ? NULL : PyCapsule_New(chain, NULL, NULL);
    PyObject *callable = capsule == NULL ? NULL : PyCFunction_New(&inside_method, capsule);
    PyObject *result = callable == NULL ? NULL : PyObject_CallOneArg(function, callable);

    Py_XDECREF(callable);
    Py_XDECREF(capsule);
    Py_XDECREF(function);
    return result;
}

PyObject *
plus_frames_go_on(PyObject *frames, PyObject *handled, PyObject *(*give)(void *), void *arg)
{
    struct chain chain = {.frames = frames,
                          .handled = handled,
                          .count = PyTuple_GET_SIZE(frames),
                          .give = give,
                          .arg = arg};
    PyObject *function = helper(), *result = NULL;

    if (function != NULL && plus_pystate_may_deepen(PyThreadState_Get(), (int)chain.count)) {
        size_t bytes = room_for(&chain, function);
        char *room = plus_pystate_frames_room(PyThreadState_Get(), bytes + 1024);

        result = room != NULL ? go_on_at(&chain, room) : go_on_with_room(&chain, bytes);
    }
    if (chain.frames != NULL && !chain.is_linked) {
        plus_frames_abandon(chain.frames);
    }
    Py_XDECREF(chain.frames);
    Py_XDECREF(chain.handled);
    return result;
}
