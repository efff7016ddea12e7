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
 * 3.11 has no entry below a loop's first frame.  It marks that frame (is_entry), returns from the loop with it, and clears it
 * where the loop was called from.  And its loop never goes from a generator to another frame.  So there each loop is one
 * segment: a base, which is marked, the frames above it, and a last one that begins the loop:
 *
 *     base of the first      a helper's frame that the interpreter made, standing before its `return`
 *     base of the others     the generator's frame
 *     last one               a helper, as above; or, if a generator is next, the frame that asks it: it executes its
 *                            instruction once more, and so C code of the interpreter, which goes on with the generator
 *
 * Both bases are met by an evaluation function of ours (PEP 523), that is there from the moment before until it is called.
 *
 * Room: the rest of the thread's chunk of frames, or, if that does not do, a chunk of our own.
 *
 * Nothing may fail once the frames are given to us, as an exception that dropped them would skip their `finally`.  So the
 * helper and its call are made once, by the probe; the memory for a chunk is the C library's, or else of the C stack;
 * neither the recursion limit nor a trace function is asked on the way.  No Python code runs, thus no signal handler and no
 * finaliser.  What is to be raised is raised in the innermost frame.
 *
 * Rejected: an evaluation function for each frame, with a loop for each: the C stack grows with the chain, all calls of the
 * process lose their short way meanwhile, and from 3.13 on the optimiser stays off once it was set.
 *
 * Rejected: a second helper that asks for so large an operand stack.  To make it takes Python code, in which a signal
 * handler may raise.
 *
 * With the GIL held; between step 1 and relink()'s end no object is allocated.
 */
#include "../frames/pyframe.h"

#include "frame_restore.h"

#include "../../_base/raise.h"
#include "../facts/probe_call.h"
#include "../facts/probes.h"
#include "../frames/frames.h"
#include "../frames/instrumentation.h"
#include "../frames/pystate.h"
#include "frame_build.h"

#include <opcode.h>
#include <stdlib.h>

typedef struct _PyInterpreterFrame Frame;

struct chain {
    PyObject *frames; /* the tuple; owned until it is linked */
    PyObject *handled;
    Py_ssize_t count;
    Frame *outermost, *innermost; /* of the segment that was built last */
    struct plus_captured last;    /* the innermost of all */
    bool is_linked;               /* all: the interpreter has them */
    int lent; /* calls beyond the recursion limit, and tracing put off, until all are linked */
    PyObject *(*give)(void *);
    void *arg;
#if PY_VERSION_HEX < 0x030C0000
    Py_ssize_t next;    /* the first that was not built yet */
    Frame *base;        /* of the segment */
    PyObject *expected; /* generator whose frame comes next; NULL: the helper's */
    _PyFrameEvalFunction usual;
#endif
};

/* Whose turn it is when the helper, or the evaluation function, is called; the GIL is not given up in between. */
static struct chain *awaited;

/* ---- the helper ---------------------------------------------------------------------------------- */

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

/* A new function `return call()` whose frames are left out of what programs see. */
static PyObject *
make_helper(void)
{
    PyObject *globals = PyDict_New(), *module, *done, *function, *bytes, *code;
    PyObject *result = NULL;

    module = globals == NULL ? NULL : Py_CompileString(HELPER, "<cpythonplus>", Py_file_input);
    done = module == NULL ? NULL : PyEval_EvalCode(module, globals, globals);
    function = done == NULL ? NULL : Py_XNewRef(PyDict_GetItemString(globals, "helper"));
    code = function == NULL ? NULL : PyFunction_GET_CODE(function);
    bytes = code == NULL ? NULL : PyCode_GetCode((PyCodeObject *)code);
    if (bytes != NULL) {
        Py_SETREF(bytes,
                  PyBytes_FromStringAndSize(PyBytes_AS_STRING(bytes), PyBytes_GET_SIZE(bytes)));
    }
    if (bytes != NULL) {
        without_resume(PyBytes_AS_STRING(bytes), PyBytes_GET_SIZE(bytes));
        PyObject *changed = plus_code_replace(code, Py_BuildValue("{sO}", "co_code", bytes));
        result = changed == NULL || !plus_instrumentation_give_data((PyCodeObject *)changed)
                     ? NULL
                     : PyFunction_New(changed, globals);
        Py_XDECREF(changed);
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

static PyObject *helper, *relinking; /* made by the probe, kept for good */

static PyObject *
relink(PyObject *module, PyObject *ignored);

static PyMethodDef relink_method = {"relink", relink, METH_NOARGS, NULL};

static bool
prepare(void)
{
    if (helper == NULL) {
        helper = make_helper();
    }
    if (relinking == NULL) {
        relinking = PyCFunction_New(&relink_method, NULL);
    }
    return helper != NULL && relinking != NULL;
}

/* ---- what the innermost call gives ---------------------------------------------------------------- */

/* A StopIteration that a `for` gets from its iterator is its end. */
static PyObject *
end_loop(struct chain *chain)
{
    PyErr_Clear();
#if PY_VERSION_HEX >= 0x030C0000
    plus_frame_go_behind(chain->innermost, &chain->last, true);
    Py_RETURN_NONE;
#else
    /* It is executed once more, with an iterator that has ended: what the helper returns. */
    Frame *frame = chain->innermost;
    PyObject *none = PyTuple_New(0);
    PyObject *ended = none == NULL ? NULL : PyObject_GetIter(none);

    Py_XDECREF(none);
    if (ended != NULL) {
        PyObject *iterator = frame->localsplus[--frame->stacktop];

        plus_frame_go_before(frame, &chain->last);
        Py_DECREF(iterator);
    }
    return ended;
#endif
}

#define SPARE_CALLS 64

/* Frames that were there stay when the limit is lowered: it is for new calls. */
static void
lend(struct chain *chain)
{
    chain->lent = (int)chain->count + SPARE_CALLS;
    plus_pystate_deepen(PyThreadState_Get(), -chain->lent);
    plus_pystate_put_off_tracing(PyThreadState_Get(), true);
}

static void
pay_back(struct chain *chain)
{
    plus_pystate_deepen(PyThreadState_Get(), chain->lent);
    plus_pystate_put_off_tracing(PyThreadState_Get(), false);
}

static PyObject *
give(struct chain *chain)
{
    pay_back(chain);
    PyObject *given = chain->give(chain->arg);

    if (given == NULL && chain->last.site != NULL && chain->last.site->kind == PLUS_SITE_FOR &&
        PyErr_ExceptionMatches(PyExc_StopIteration)) {
        given = end_loop(chain);
    }
    return given;
}

/* Before the generators' own are in front of it. */
static void
set_handled(struct chain *chain, PyThreadState *tstate)
{
    PyObject *handled = chain->handled;

    if (handled != NULL) {
        chain->handled = NULL;
        Py_XSETREF(PLUS_TSTATE(tstate)->exc_info->exc_value, handled);
    }
}

/* Bytes of all frames. */
static size_t
room_for(const struct chain *chain)
{
    size_t helpers = 2 * (size_t)((PyCodeObject *)PyFunction_GET_CODE(helper))->co_stacksize + 64;
    size_t bytes = helpers * sizeof(PyObject *);

    for (Py_ssize_t i = 0; i < chain->count; i++) {
        struct plus_captured item = plus_frames_captured(chain->frames, i);
        bytes += plus_frame_bytes(&item);
    }
    return bytes;
}

/* Of frames that were built and not linked, up to `base`. */
static void
drop(Frame *innermost, const Frame *base)
{
    for (Frame *frame = innermost, *outer; frame != base; frame = outer) {
        outer = frame->previous;
        frame->previous = NULL;
        if (frame->owner == FRAME_OWNED_BY_THREAD) {
            plus_frame_drop(frame);
        }
    }
}

/* The chain whose helper has called relink(). */
static struct chain *
arrived(void)
{
    struct chain *chain = awaited;

    awaited = NULL;
    if (chain == NULL) {
        PyErr_SetString(PyExc_SystemError, "no frames are to be linked");
    }
    return chain;
}

#if PY_VERSION_HEX >= 0x030C0000

/* ---- one loop for all ---------------------------------------------------------------------------- */

/* Builds all at `room`; returns its end. */
static char *
build(struct chain *chain, char *room)
{
    Frame *outer = NULL;

    for (Py_ssize_t i = 0; i < chain->count; i++) {
        struct plus_captured item = plus_frames_captured(chain->frames, i);
        Frame *frame = plus_frame_build(&item, room);

        if (i <
            chain->count - 1) { /* where a generator that has returned leads to is noted below it */
            plus_frame_go_behind(frame, &item, true);
        }
        room += plus_frame_bytes(&item);
        frame->previous = outer;
        chain->outermost = outer == NULL ? frame : chain->outermost;
        chain->last = item;
        outer = frame;
    }
    chain->innermost = outer;
    return room;
}

/* As the interpreter does where it goes on with a generator. */
static void
link_generators(const struct chain *chain, PyThreadState *tstate)
{
    for (Py_ssize_t i = 0; i < chain->count; i++) {
        PyObject *owner = plus_frames_captured(chain->frames, i).owner;

        if (plus_is_generator(owner)) {
            PyGenObject *gen = (PyGenObject *)owner;
            gen->gi_exc_state.previous_item = PLUS_TSTATE(tstate)->exc_info;
            PLUS_TSTATE(tstate)->exc_info = &gen->gi_exc_state;
        }
    }
}

/* They are what the thread executes now, on top of `below`. */
static void
link_all(struct chain *chain, Frame *below, int calls)
{
    PyThreadState *tstate = PyThreadState_Get();

    chain->outermost->previous = below;
    plus_pystate_deepen(tstate, calls);
    chain->is_linked = true;
    set_handled(chain, tstate);
    link_generators(chain, tstate);
    Py_CLEAR(chain->frames);
}

/* Step 3: called by the helper. */
static PyObject *
relink(PyObject *module, PyObject *ignored)
{
    struct chain *chain = arrived();

    (void)module, (void)ignored;
    if (chain == NULL) {
        return NULL;
    }
    Frame *top = plus_pyframe_top(PyThreadState_Get()), *entry = top->previous;

    if (!chain->is_linked) {
        link_all(chain, entry, (int)chain->count);
    }
    else { /* run_innermost() has put them below the entry */
        entry->previous = chain->outermost->previous;
        chain->outermost->previous = entry;
    }
    top->previous = chain->innermost;
    return give(chain);
}

/* Steps 2 and 3. */
static PyObject *
call_helper(struct chain *chain)
{
    awaited = chain;
    return PyObject_CallOneArg(helper, relinking);
}

struct outcome {
    PyObject *result;
    struct plus_raised raised;
};

static PyObject *
give_outcome(void *arg)
{
    struct outcome *outcome = arg;

    plus_raised_put(outcome->raised);
    return outcome->result;
}

/* The innermost stands between two instructions, so nothing can be returned to it: it has a loop for itself, and its
 * result is given to the others. */
static PyObject *
run_innermost(struct chain *chain)
{
    PyThreadState *tstate = PyThreadState_Get();
    Frame **current = plus_pystate_current_frame(tstate), *below = *current;
    Frame *innermost = chain->innermost, *outer = innermost->previous;

    link_all(chain, below, (int)chain->count - 1);
    if (outer == NULL) {
        innermost->previous = below;
    }
    *current = innermost; /* for whom looks at the frames */
    pay_back(chain);
    PyObject *value = chain->give(chain->arg);

    if (value == NULL) {
        plus_frame_raise_at(innermost, &chain->last);
    }
    *current = outer != NULL ? outer : below;
    struct outcome outcome = {_PyEval_EvalFrameDefault(tstate, innermost, value == NULL), {0}};

    Py_XDECREF(value);
    if (outer != NULL) {
        outcome.raised = plus_raised_take();
        chain->innermost = outer;
        chain->give = give_outcome;
        chain->arg = &outcome;
        chain->last.site = NULL;
        lend(chain);
        outcome.result = call_helper(chain);
        *current = below; /* each loop of 3.12 has its own */
    }
    return outcome.result;
}

/* All at `room`. */
static PyObject *
go_on_at(struct chain *chain, char *room)
{
    PyThreadState *tstate = PyThreadState_Get();
    char *top = plus_pystate_frames_top(tstate);

    plus_pystate_set_frames_top(tstate, build(chain, room));
    PyObject *result = chain->last.site == NULL ? run_innermost(chain) : call_helper(chain);

    if (!chain->is_linked) {
        drop(chain->innermost, NULL);
    }
    plus_pystate_set_frames_top(tstate, top);
    return result;
}

#else

/* ---- a loop for each segment (3.11) --------------------------------------------------------------- */

static PyObject *
run_segment(struct chain *chain, Frame *base);

static PyObject *
evaluate(PyThreadState *tstate, Frame *frame, int throws)
{
    struct chain *chain = awaited;
    bool is = chain != NULL && throws == 0 &&
              (chain->expected != NULL
                   ? frame == plus_generator_frame(chain->expected)
                   : plus_pyframe_code(frame) == (PyCodeObject *)PyFunction_GET_CODE(helper));

    if (!is) { /* not ours */
        return _PyEval_EvalFrameDefault(tstate, frame, throws);
    }
    awaited = NULL;
    _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), chain->usual);
    return run_segment(chain, frame);
}

/* Until the frame of `generator` (NULL: of the helper) is to be evaluated. */
static void
await_frame(struct chain *chain, PyObject *generator)
{
    chain->expected = generator;
    chain->usual = _PyInterpreterState_GetEvalFrameFunc(PyInterpreterState_Get());
    awaited = chain;
    _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), evaluate);
}

/* Where it did not come so far. */
static void
await_no_more(struct chain *chain)
{
    if (awaited == chain) {
        awaited = NULL;
        _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), chain->usual);
    }
}

/* Builds the frames above the base, until one is a generator's or all are there; returns the end of their room. */
static char *
build(struct chain *chain, char *room)
{
    Frame *outer = chain->base;

    for (; chain->next < chain->count; chain->next++) {
        struct plus_captured item = plus_frames_captured(chain->frames, chain->next);

        if (plus_is_generator(item.owner)) {
            break;
        }
        Frame *frame = plus_frame_build(&item, room);

        room += plus_frame_bytes(&item);
        frame->previous = outer;
        outer = frame;
        chain->last = item;
    }
    chain->innermost = outer;
    return room;
}

/* The loop that began with `top` ends with the base. */
static void
link_segment(const struct chain *chain, Frame *top, Frame *below_top)
{
    chain->base->previous = top->previous;
    chain->base->is_entry = true;
    top->is_entry = false;
    top->previous = below_top;
}

/* Called by the helper on top of the last segment. */
static PyObject *
relink(PyObject *module, PyObject *ignored)
{
    struct chain *chain = arrived();

    (void)module, (void)ignored;
    if (chain == NULL) {
        return NULL;
    }
    link_segment(chain, plus_pyframe_top(PyThreadState_Get()), chain->innermost);
    chain->is_linked = true;
    Py_CLEAR(chain->frames);
    return give(chain);
}

static int
frames_above(const Frame *base, const Frame *innermost)
{
    int count = 0;

    for (; innermost != base; innermost = innermost->previous) {
        count++;
    }
    return count;
}

/* The last segment: begins with a helper. */
static PyObject *
run_last(struct chain *chain, char *room)
{
    PyThreadState *tstate = PyThreadState_Get();
    Frame *top = plus_frame_begin(room, helper, (PyCodeObject *)PyFunction_GET_CODE(helper));
    int depth = frames_above(chain->base, chain->innermost) + 1;

    top->localsplus[0] = Py_NewRef(relinking);
    plus_pystate_set_frames_top(tstate, (char *)(top->localsplus + top->f_code->co_nlocalsplus +
                                                 top->f_code->co_stacksize));
    plus_pystate_deepen(tstate, depth);
    awaited = chain;
    PyObject *result = _PyEval_EvalFrameDefault(tstate, top, 0);

    if (!chain->is_linked) { /* it was the first of its loop, and the only one */
        plus_pystate_deepen(tstate, -depth);
        plus_frame_drop(top);
        drop(chain->innermost, chain->base);
    }
    return result;
}

/* Another generator follows: begins with the frame that asks it. */
static PyObject *
run_asking(struct chain *chain, char *room)
{
    PyThreadState *tstate = PyThreadState_Get();
    PyObject *generator = plus_frames_captured(chain->frames, chain->next).owner;
    Frame *top = chain->innermost, *below = top->previous;
    int depth = frames_above(chain->base, top);

    plus_frame_go_before(top, &chain->last);
    ((PyGenObject *)generator)->gi_frame_state = FRAME_SUSPENDED;
    plus_pystate_set_frames_top(tstate, room);
    plus_pystate_deepen(tstate, depth);
    await_frame(chain, generator);
    /* evaluate() links it to what is below. */
    chain->outermost = top != chain->base ? below : NULL;
    PyObject *result = _PyEval_EvalFrameDefault(tstate, top, 0);

    await_no_more(chain);
    return result;
}

/* Everything from `base` on, whose loop is to be; `base` is the helper's frame or that of the next generator. */
static PyObject *
run_segment(struct chain *chain, Frame *base)
{
    PyThreadState *tstate = PyThreadState_Get();

    if (chain->expected != NULL) { /* it was asked by what began the loop outside */
        struct plus_captured item = plus_frames_captured(chain->frames, chain->next++);

        if (chain->outermost != NULL) {
            link_segment(chain, chain->innermost, chain->outermost);
        }
        (void)plus_frame_build(&item, NULL);
        chain->last = item;
    }
    else {
        base->prev_instr = _PyCode_CODE(base->f_code) + Py_SIZE(base->f_code) - 2;
        set_handled(chain, tstate);
    }
    chain->base = base;
    char *room = build(chain, plus_pystate_frames_top(tstate));

    return chain->next < chain->count ? run_asking(chain, room) : run_last(chain, room);
}

static PyObject *
go_on_at(struct chain *chain, char *room)
{
    PyThreadState *tstate = PyThreadState_Get();
    char *top = plus_pystate_frames_top(tstate);

    plus_pystate_set_frames_top(tstate, room);
    await_frame(chain, NULL);
    PyObject *result = PyObject_CallOneArg(helper, Py_None);

    await_no_more(chain);
    plus_pystate_set_frames_top(tstate, top);
    return result;
}

#endif

/* ---- where there is room -------------------------------------------------------------------------- */

static PyObject *
go_on_in_chunk(struct chain *chain, void *memory, size_t bytes)
{
    PyThreadState *tstate = PyThreadState_Get();
    struct plus_chunk outer = plus_pystate_enter_chunk(tstate, memory, bytes);
    PyObject *result = go_on_at(chain, plus_pystate_frames_top(tstate));

    plus_pystate_leave_chunk(tstate, &outer);
    return result;
}

static PyObject *
go_on_somewhere(struct chain *chain, size_t stack_left)
{
    size_t bytes = room_for(chain) + 1024;
    char *room = plus_pystate_frames_room(PyThreadState_Get(), bytes);
    void *memory = room != NULL ? NULL : malloc(bytes); /* Python's own allocator may call others */

    if (room != NULL) {
        return go_on_at(chain, room);
    }
    if (memory == NULL && bytes < stack_left / 2) {
        return go_on_in_chunk(chain, __builtin_alloca(bytes), bytes);
    }
    PyObject *result = memory == NULL ? PyErr_NoMemory() : go_on_in_chunk(chain, memory, bytes);

    free(memory);
    return result;
}

PyObject *
plus_frames_go_on(PyObject *frames, PyObject *handled, PyObject *(*give_value)(void *), void *arg,
                  size_t stack_left)
{
    struct chain chain = {.frames = frames,
                          .handled = handled,
                          .count = PyTuple_GET_SIZE(frames),
                          .give = give_value,
                          .arg = arg};

    lend(&chain);
    PyObject *result = go_on_somewhere(&chain, stack_left);

    awaited = NULL;
    if (!chain.is_linked) {
        pay_back(&chain);
        plus_frames_abandon(chain.frames);
        Py_DECREF(chain.frames);
    }
    Py_XDECREF(chain.handled);
    return result;
}

/* ---- whether it is so ---------------------------------------------------------------------------- */

struct asked {
    bool fits;
};

/* A frame of the probe's function at the call of `look`, as it would be captured: `first` three times as a variable or
 * operand, and `look`. */
static PyObject *
captured_at_call(const struct plus_probe_call *call, PyObject *function)
{
    const struct plus_call_site *site = NULL;
    int end = (int)Py_SIZE(call->code) * (int)sizeof(_Py_CODEUNIT);

    for (int offset = 0; offset < end; offset += (int)sizeof(_Py_CODEUNIT)) {
        const struct plus_call_site *found = plus_stack_depth_at(call->code, offset);
        site = found != NULL ? found : site;
    }
    if (site == NULL || site->kept != 1 || call->code->co_nlocalsplus != 3) {
        return NULL;
    }
    return Py_BuildValue("((Oiy(OOOO)O))", function, site->offset, "oooo", call->first,
                         call->callable, call->first, call->first, Py_None);
}

/* Built in memory that nobody executes, and read as the interpreter's frames are read. */
static bool
reads_as_built(const struct plus_probe_call *call, PyObject *frames)
{
    struct plus_captured item = plus_frames_captured(frames, 0);
    PyObject *expected[] = {call->first, call->callable, call->first};
    char *memory = PyMem_Calloc(2, plus_frame_bytes(&item) + 1024);
    bool fits = memory != NULL;

    if (fits) {
        Frame *frame = plus_pyframe_at(plus_frame_build(&item, memory + 512));

        fits = plus_pyframe_code(frame) == call->code && frame->frame_obj == NULL;
        for (int i = 0; fits && i < 3; i++) {
            fits = plus_pyframe_variable(frame, i) == expected[i];
        }
#if PY_VERSION_HEX >= 0x030E0000
        fits = fits && frame->stackpointer == frame->localsplus + 4;
#else
        fits = fits && frame->stacktop == 4;
#endif
        if (fits) { /* else nobody knows what it has */
            plus_frame_drop(frame);
        }
    }
    PyMem_Free(memory);
    return fits;
}

static PyObject *
give_true(void *arg)
{
    (void)arg;
    Py_RETURN_TRUE;
}

/* (first, what the call gave) */
static void
go_on_once(const struct plus_probe_call *call, void *arg)
{
    struct asked *asked = arg;
    Frame *top = plus_pyframe_top(PyThreadState_Get());
#if PY_VERSION_HEX >= 0x030E0000
    PyObject *function = PyStackRef_AsPyObjectBorrow(plus_pyframe_at(top)->f_funcobj);
#elif PY_VERSION_HEX >= 0x030C0000
    PyObject *function = plus_pyframe_at(top)->f_funcobj;
#else
    PyObject *function = (PyObject *)plus_pyframe_at(top)->f_func;
#endif
    PyObject *frames =
        PyFunction_Check(function) && PyFunction_GET_CODE(function) == (PyObject *)call->code
            ? captured_at_call(call, function)
            : NULL;

    PyObject *adopted =
        frames != NULL && reads_as_built(call, frames) ? plus_frames_adopt(frames) : NULL;

    asked->fits = adopted != NULL;
    if (asked->fits) {
        PyObject *result = plus_frames_go_on(adopted, NULL, give_true, NULL, 0);

        asked->fits = result != NULL && PyTuple_CheckExact(result) &&
                      PyTuple_GET_SIZE(result) == 2 && PyTuple_GET_ITEM(result, 0) == call->first &&
                      PyTuple_GET_ITEM(result, 1) == Py_True;
        Py_XDECREF(result);
    }
    Py_XDECREF(frames);
}

const char *
plus_probe_frame_building(void)
{
    const enum plus_fact below[] = {PLUS_FACT_FRAMES, PLUS_FACT_OPERANDS, PLUS_FACT_THREAD_STATE,
                                    PLUS_FACT_INSTRUMENTATION};
    const char *refusal = plus_facts_refusal(below, sizeof below / sizeof below[0]);
    struct asked asked = {.fits = false};

    if (refusal != NULL) {
        return refusal;
    }
    return prepare() && plus_probe_call(go_on_once, &asked) == 0 && asked.fits
               ? NULL
               : "frames that are built do not go on as expected";
}
