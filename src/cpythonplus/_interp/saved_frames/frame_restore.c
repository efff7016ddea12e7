/* Going on in the middle of functions.
 *
 * The interpreter returns from one Python function to another without leaving its evaluation loop: it takes the frame
 * off, pushes the result on the operand stack of the frame below, and goes on behind the call there.  So a chain of
 * frames goes on by itself once a value is returned to the innermost one.  A helper does that: a function whose code is
 * `return call()`.  Programs do not see it, as tracebacks and f_back leave out frames without a RESUME.
 *
 *     outermost ... innermost | helper -> C: relink()        built in the room for frames, in this order
 *
 * 1. The frames are built there as the interpreter builds them (_PyFrame_Initialize), with their variables, their
 *    operand stacks, and the instruction behind which each goes on.
 * 2. The helper is called, above them.  An evaluation loop begins for it, and it calls relink():
 *
 *     before:  helper -> entry of the loop -> what the thread executed
 *     after:   helper -> innermost -> ... -> outermost -> entry of the loop -> what the thread executed
 *
 * 3. relink() gives the value that the innermost call was waiting for, or raises.  The helper passes the value or the
 *    exception on to the innermost frame.  From here on the chain is like any other: the interpreter takes off each
 *    frame in reverse order of its allocation, and the outermost one returns from the loop of step 2.
 *
 * 3.11 has no entry frame below a loop's first frame.  It marks that frame (is_entry), returns from the loop with it,
 * and its caller clears it.  And its loop never goes from a generator to another frame.  So on 3.11 each loop is one
 * segment: a marked base frame, the frames above it, and a last frame that begins the loop:
 *
 *     base of the first      a helper's frame that the interpreter made, standing before its `return`
 *     base of the others     the generator's frame
 *     last one               a helper, as above; or, if a generator is next, the frame that asks it: it executes its
 *                            instruction once more, and so C code of the interpreter, which goes on with the generator
 *
 * Both kinds of base reach our evaluation function (PEP 523), which is installed just before and removed when it is
 * called.
 *
 * Room: the rest of the thread's chunk of frames or, if that is too small, a chunk of our own.
 *
 * Nothing may fail once the frames are given to us, as an exception that dropped them would skip their `finally`.  So
 * the helper and its call are made once, by the probe; the memory of a chunk comes from malloc, or else from the C
 * stack; the recursion limit and trace functions are suspended.  No Python code runs, thus no signal handler and no
 * finaliser.  An exception is raised in the innermost frame only.
 *
 * Rejected: an evaluation function with a loop for each frame: the C stack grows with the chain, all calls of the
 * process lose their fast path meanwhile, and from 3.13 on the optimiser stays off once the function was set.
 *
 * Rejected: a second helper that asks for so large an operand stack: making it runs Python code, in which a signal
 * handler may raise.
 *
 * All with the GIL held; from step 1 to relink()'s end no object is allocated.
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

typedef struct _PyInterpreterFrame Frame;

struct chain {
    PyObject *frames; /* the tuple; owned until it is linked */
    PyObject *handled;
    Py_ssize_t count;
    Frame *outermost, *innermost; /* of the segment that was built last */
    struct plus_captured last;    /* the innermost frame of the chain */
    bool is_linked;               /* true once every segment is linked into the thread state */
    /* Calls beyond the recursion limit; until all frames are linked tracing is suspended too. */
    int lent;
    PyObject *(*give)(void *);
    void *arg;
#if PY_VERSION_HEX < 0x030C0000
    Py_ssize_t next;    /* index of the first frame that is not yet built */
    Frame *base;        /* of the segment */
    PyObject *expected; /* the generator that owns the next frame; NULL: the helper's */
    _PyFrameEvalFunction usual;
#endif
};

/* The chain that the next call of relink() or evaluate() serves; the GIL is held until then. */
static struct chain *awaited;

/* ---- the helper ---------------------------------------------------------------------------------- */

#define HELPER "def helper(call):\n    return call()\n"

/* Replace RESUME and its cache entries (3.15) by NOPs. */
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

/* A new function `return call()` whose frames tracebacks and f_back leave out. */
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

static PyObject *helper, *relinking; /* made by the probe, never freed */

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

/* ---- the result of the innermost call ------------------------------------------------------------- */

/* A StopIteration from the iterator of a `for` ends the loop. */
static PyObject *
end_loop(struct chain *chain)
{
    PyErr_Clear();
#if PY_VERSION_HEX >= 0x030C0000
    plus_frame_go_behind(chain->innermost, &chain->last, true);
    Py_RETURN_NONE;
#else
    /* The FOR_ITER is executed again, with the ended iterator that the helper returns. */
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

/* Restoring frames must not fail if the recursion limit was lowered meanwhile: the limit is for new calls. */
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

/* Set the handled exception before the generators put theirs in front of it. */
static void
set_handled(struct chain *chain, PyThreadState *tstate)
{
    PyObject *handled = chain->handled;

    if (handled != NULL) {
        chain->handled = NULL;
        Py_XSETREF(PLUS_TSTATE(tstate)->exc_info->exc_value, handled);
    }
}

/* The bytes of all frames. */
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

/* Drop the built and unlinked frames from `innermost` up to `base`. */
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

/* Build all frames at `room`; returns their end. */
static char *
build(struct chain *chain, char *room)
{
    Frame *outer = NULL;

    for (Py_ssize_t i = 0; i < chain->count; i++) {
        struct plus_captured item = plus_frames_captured(chain->frames, i);
        Frame *frame = plus_frame_build(&item, room);

        if (i < chain->count - 1) { /* a generator's end leads behind the loop below it */
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

/* Link the exception states as the interpreter does when it resumes a generator. */
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

/* Put the frames on top of `below` as those that the thread executes. */
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

/* Step 3; called by the helper. */
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
    else { /* run_innermost() has linked them below the entry */
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

/* Run an innermost frame that stands between two instructions.  Nothing can be returned to it, so it gets a loop of its
 * own, and its result is given to the other frames. */
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
    *current = innermost; /* so that the frames can be inspected */
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
        *current = below; /* 3.12: each loop has its own _PyCFrame */
    }
    return outcome.result;
}

/* Restore all frames at `room` and go on. */
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

    if (!is) { /* another function's frame */
        return _PyEval_EvalFrameDefault(tstate, frame, throws);
    }
    awaited = NULL;
    _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), chain->usual);
    return run_segment(chain, frame);
}

/* Install evaluate() until the frame of `generator`, or of the helper if NULL, is to be evaluated. */
static void
await_frame(struct chain *chain, PyObject *generator)
{
    chain->expected = generator;
    chain->usual = _PyInterpreterState_GetEvalFrameFunc(PyInterpreterState_Get());
    awaited = chain;
    _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), evaluate);
}

/* Remove the evaluation hook if the frame was never evaluated. */
static void
await_no_more(struct chain *chain)
{
    if (awaited == chain) {
        awaited = NULL;
        _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), chain->usual);
    }
}

/* Build the frames above the base up to the next generator's or the last one; returns the end of their room. */
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

/* Make the base the end of the loop that began with `top`. */
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

/* Run the last segment; its loop begins with a helper. */
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

    if (!chain->is_linked) { /* relink() failed: the helper's frame is the only one of its loop */
        plus_pystate_deepen(tstate, -depth);
        plus_frame_drop(top);
        drop(chain->innermost, chain->base);
    }
    return result;
}

/* Run a segment below another generator; its loop begins with the frame that asks the generator. */
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
    /* evaluate() links the top frame to `below`. */
    chain->outermost = top != chain->base ? below : NULL;
    PyObject *result = _PyEval_EvalFrameDefault(tstate, top, 0);

    await_no_more(chain);
    return result;
}

/* Run the chain from `base` on in a loop for it; `base` is the helper's frame or that of the next generator. */
static PyObject *
run_segment(struct chain *chain, Frame *base)
{
    PyThreadState *tstate = PyThreadState_Get();

    if (chain->expected != NULL) { /* the loop outside began by asking this generator */
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

/* ---- room for the frames -------------------------------------------------------------------------- */

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
    void *memory = room != NULL ? NULL : malloc(bytes); /* PyMem_Malloc may call a hook */

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

/* ---- proof --------------------------------------------------------------------------------------- */

struct asked {
    bool fits;
};

/* A frame of the probe's function at its call of `look`, as it would be captured: `first` three times as a variable or
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

/* Build a frame in memory that is never executed, and read it as an interpreter's frame is read. */
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
        if (fits) { /* else its contents are unknown */
            plus_frame_drop(frame);
        }
    }
    PyMem_Free(memory);
    return fits;
}

static PyObject *
give_true(void *arg)
{
    Py_RETURN_TRUE;
}

/* The expected result is (first, what the call gave). */
static void
go_on_once(const struct plus_probe_call *call, void *arg)
{
    struct asked *asked = arg;
    Frame *top = plus_pyframe_top(PyThreadState_Get());
    PyObject *function = plus_pyframe_function(plus_pyframe_at(top));
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
