/* The references that interpreter frames own; no other file knows them.
 *
 * The garbage collector asks a parked tasklet for its references.  Most of them are in its frames, which have no object
 * of their own.  Each reference that a frame owns has to be visited once.  If one is left out, it looks as if it were
 * held from outside, and the tasklet is not collected.  If one is visited too often, the collector frees an object in
 * use.  So in doubt a reference is left out.
 *
 *     what a frame has      3.14, 3.15                       3.11 to 3.13
 *     code, function        always                           always
 *     variables             up to `stackpointer`             always
 *     operand stack         up to `stackpointer`;            outside of C up to `stacktop`;
 *                           a tag tells what it borrows      inside of C: see below
 *
 * Up to 3.13 and inside of C, the evaluation loop has the stack's height in a register.  The height before the
 * instruction in progress follows from the bytecode (stack_depth.c).  If that is a call, its operands are on top:
 *
 *     variables | the operands below it ...... | callable, self or NULL, arguments
 *                 owned until the call's end     owned until the function returns; then dropped one by one, while
 *                 and beyond                     the frame looks as it did, and finalisers run
 *
 * No field tells whether the function has returned.  The tasklet was parked in the innermost frame, and the caller
 * knows how (`uncalled`).  For the other frames the Python frame that C called tells: if it is a finaliser or a weak
 * reference's callback, the call may be over.  C can run other functions then, for instance when a buffer is flushed at
 * its end.  So no operand of the call is visited that might be freed: only those that the running function holds as
 * well.
 *
 * An exception pops the operands below the call too.  But first a traceback is made, and with it a frame object: if
 * there is a frame object, no operand is visited.
 *
 * Rejected: scanning the C stack for pointers (a word that looks like a pointer owns nothing); noting the operands at
 * each call (the interpreter has no such hook that costs nothing).
 *
 * A stack that is kept elsewhere (cold.c) still contains the old addresses: plus_frames_located() gives the present
 * address of a frame, `home` is the old one. */
#include "pyframe.h"

#include "../../_base/memory/own_memory.h"
#include "../facts/probe_call.h"
#include "../facts/probes.h"
#include "../objects/layouts.h"
#include "frames.h"
#include "pystate.h"
#include "stack_depth.h"

typedef struct _PyInterpreterFrame Frame;

/* ---- the chain ------------------------------------------------------------------------------- */

Frame *
plus_frames_located(const struct plus_frames *frames, Frame *frame)
{
    char *address = (char *)frame;

    if (address >= frames->moved.low && address < frames->moved.high) {
        return plus_pyframe_at((Frame *)(address + frames->moved.moved));
    }
    return plus_pyframe_at(frame);
}

static int
offset_of(Frame *frame)
{
    return _PyInterpreterFrame_LASTI(frame) * (int)sizeof(_Py_CODEUNIT);
}

/* ---- references of a frame ------------------------------------------------------------------- */

#if PY_VERSION_HEX >= 0x030E0000

/* The two low bits tell: a reference that owns has neither.  All others are NULL, tagged integers, and references to
 * objects that are immortal or that a variable keeps alive.  A call in 3.14 leaves its argument on the stack while that
 * is deallocated; it then has a reference count of 0. */
static int
visit_reference(_PyStackRef ref, visitproc visit, void *arg)
{
    PyObject *owned = (PyObject *)ref.bits;

    if (owned == NULL || (ref.bits & 3) != 0 || Py_REFCNT(owned) == 0) {
        return 0;
    }
    return visit(owned, arg);
}

/* Visit what lies from slot `from` on.  `frame` is the address to read it at, `home` the address that pointers to it hold. */
static int
visit_slots(Frame *frame, Frame *home, ptrdiff_t from, visitproc visit, void *arg)
{
    PyCodeObject *code = plus_pyframe_code(frame);
    ptrdiff_t count = code == NULL ? 0 : code->co_nlocalsplus;
    int stop = 0;

    if (frame->stackpointer != NULL && code != NULL) {
        count = frame->stackpointer - home->localsplus;
    }
    for (ptrdiff_t i = from; i < count && stop == 0; i++) {
        stop = visit_reference(frame->localsplus[i], visit, arg);
    }
    return stop;
}

static int
visit_frame(Frame *frame, Frame *home, visitproc visit, void *arg)
{
    int stop = visit_slots(frame, home, 0, visit, arg);

    if (stop != 0 || (stop = visit_reference(frame->f_executable, visit, arg)) != 0 ||
        (stop = visit_reference(frame->f_funcobj, visit, arg)) != 0) {
        return stop;
    }
    Py_VISIT(frame->f_locals);
    Py_VISIT(frame->frame_obj);
    return 0;
}

int
plus_frames_visit(const struct plus_frames *frames, visitproc visit, void *arg)
{
    for (Frame *home = frames->top, *frame; home != NULL; home = frame->previous) {
        frame = plus_frames_located(frames, home);
        if (frame->owner == FRAME_OWNED_BY_THREAD) {
            int stop = visit_frame(frame, home, visit, arg);
            if (stop != 0) {
                return stop;
            }
        }
    }
    return 0;
}

int
plus_frames_visit_unnamed(Frame *frame, Frame *callee, bool uncalled, visitproc visit, void *arg)
{
    PyCodeObject *code = plus_pyframe_code(frame);
    int stop;

    (void)callee, (void)uncalled;
    if (code == NULL || frame->owner != FRAME_OWNED_BY_THREAD) {
        return 0;
    }
    if ((stop = visit_slots(frame, frame, code->co_nlocalsplus, visit, arg)) != 0 ||
        (stop = visit_reference(frame->f_funcobj, visit, arg)) != 0) {
        return stop;
    }
    Py_VISIT(frame->frame_obj);
    return 0;
}

int
plus_frames_visit_waiting(Frame *frame, visitproc visit, void *arg)
{
    (void)frame, (void)visit, (void)arg; /* the frame tells its depth: all are visited already */
    return 0;
}

#else

/* The argument itself, if its variable is a cell. */
static PyObject *
argument_of(Frame *frame, int index)
{
    PyObject *argument = frame->localsplus[index];

    return argument != NULL && PyCell_Check(argument) ? PyCell_GET(argument) : argument;
}

static bool
is_dead_reference(PyObject *reference)
{
    return reference != NULL && PyWeakref_Check(reference) &&
           ((PyWeakReference *)reference)->wr_object == Py_None;
}

/* True if the frame runs the __del__ of the argument's class, under that name or the function's own. */
static bool
is_del_of(PyObject *argument, Frame *frame)
{
    return argument != NULL && Py_TYPE(argument)->tp_finalize != NULL &&
           plus_class_attribute(Py_TYPE(argument), "__del__") == plus_pyframe_function(frame);
}

static bool
is_named(PyCodeObject *code, const char *name)
{
    return PyUnicode_CompareWithASCIIString(code->co_name, name) == 0;
}

/* True if the function runs because an object is deallocated.  That object can be an operand of the caller's finished
 * call, next to others that have been freed already. */
static bool
is_finaliser(Frame *frame, PyCodeObject *code)
{
    int count = code->co_argcount + code->co_kwonlyargcount + ((code->co_flags & CO_VARARGS) != 0);

    for (int i = 0; i < count; i++) {
        PyObject *argument = argument_of(frame, i);
        if (is_dead_reference(argument) || is_del_of(argument, frame)) {
            return true;
        }
        Py_ssize_t more = argument != NULL && PyTuple_CheckExact(argument) ? Py_SIZE(argument) : 0;
        while (more > 0) {
            PyObject *one = PyTuple_GET_ITEM(argument, --more);
            if (is_dead_reference(one) || is_del_of(one, frame)) {
                return true;
            }
        }
    }
    return is_named(code, "__del__");
}

/* True if the running function is the method that runs when `callable`, a class, an object or an iterator, is
 * called. */
static bool
is_method_of(PyObject *callable, Frame *frame, PyCodeObject *code)
{
    PyObject *first = code->co_argcount > 0 ? argument_of(frame, 0) : NULL;

    if (first == NULL) {
        return false;
    }
    if (first == callable) {
        return is_named(code, "__new__") || is_named(code, "__call__") ||
               is_named(code, "__next__");
    }
    return (PyObject *)Py_TYPE(first) == callable && is_named(code, "__init__");
}

/* True if the call of `operands` runs `callee`: its function is one of them, or a method of the first.  The operands
 * are only compared, as they may have been freed if the call is over. */
static bool
is_run_by(PyObject **operands, int count, Frame *callee)
{
    PyCodeObject *code = plus_pyframe_code(callee);

    if (code == NULL || callee->owner != FRAME_OWNED_BY_THREAD || is_finaliser(callee, code)) {
        return false;
    }
    for (int i = 0; i < count; i++) {
        if (operands[i] == plus_pyframe_function(callee)) {
            return true;
        }
    }
    /* Up to 3.12 the slot below the callable holds NULL unless a method is called. */
    return is_method_of(operands[PY_VERSION_HEX < 0x030D0000 && operands[0] == NULL], callee, code);
}

/* True if the slot at the base of a call still holds the callable.  The result replaces it, and the evaluation loop
 * runs signal handlers and pending calls after that; both are alive. */
static bool
is_unfinished(PyObject *base)
{
#if PY_VERSION_HEX >= 0x030D0000
    return base != NULL && PyCallable_Check(base);
#else
    return base == NULL || PyType_HasFeature(Py_TYPE(base), Py_TPFLAGS_METHOD_DESCRIPTOR);
#endif
}

static int
visit_slots(Frame *frame, int from, int to, visitproc visit, void *arg)
{
    for (int i = from; i < to; i++) {
        Py_VISIT(frame->localsplus[i]);
    }
    return 0;
}

static bool
is_variable(Frame *frame, PyObject *op)
{
    for (int i = 0; i < plus_pyframe_code(frame)->co_nlocalsplus; i++) {
        if (op != NULL && frame->localsplus[i] == op) {
            return true;
        }
    }
    return false;
}

/* True if an operand is alive even if the call is over: it is the running function, one of its variables, or the class
 * of its first argument. */
static bool
is_held_by(Frame *callee, PyObject *operand)
{
    PyObject *first = plus_pyframe_code(callee)->co_argcount > 0 ? argument_of(callee, 0) : NULL;

    return operand == plus_pyframe_function(callee) || is_variable(callee, operand) ||
           (first != NULL && (operand == first || operand == (PyObject *)Py_TYPE(first)));
}

/* f(*iterable) turns the iterable into a tuple, drops the iterable and leaves its address on the stack: it may have
 * been freed.  A tuple stays as it is, but it may be examined only if a variable holds it. */
static bool
is_tuple_of_a_variable(Frame *frame, PyObject *unpacked)
{
    return is_variable(frame, unpacked) && PyTuple_CheckExact(unpacked);
}

/* Visit the operand stack of a frame that is inside C.  `callee` is the next Python frame that C called, NULL for the
 * innermost. */
static int
visit_operands(Frame *frame, PyCodeObject *code, Frame *callee, bool uncalled, visitproc visit,
               void *arg)
{
    if (callee == NULL ? uncalled : frame->frame_obj != NULL) {
        return 0;
    }
    const struct plus_call_site *site = plus_stack_depth_at(code, offset_of(frame));
    if (site == NULL || site->kind == PLUS_SITE_SEND || site->kind == PLUS_SITE_EXIT) {
        return 0;
    }
    int bottom = code->co_nlocalsplus, base = bottom + site->base, top = bottom + site->depth;
    PyObject **operands = frame->localsplus + base;
    bool runs = callee == NULL ? site->kind == PLUS_SITE_FOR || is_unfinished(operands[0])
                               : is_run_by(operands, top - base, callee);
    int stop = callee == NULL && !runs ? 0 : visit_slots(frame, bottom, base, visit, arg);

    for (int i = base; stop == 0 && runs && i < top; i++) {
        PyObject *operand = frame->localsplus[i];
        bool gone = i - bottom == site->unpacked && !is_tuple_of_a_variable(frame, operand);

        if (!gone && (callee == NULL || is_held_by(callee, operand))) {
            stop = visit_slots(frame, i, i + 1, visit, arg);
        }
    }
    return stop;
}

/* Visit the slots from `from` on: the variables, if that is 0, and the operands. */
static int
visit_from(int from, Frame *frame, PyCodeObject *code, Frame *callee, bool uncalled,
           visitproc visit, void *arg)
{
    if (frame->stacktop >= 0) {
#if PY_VERSION_HEX < 0x030C0000
        /* Inside C only tracing gets here, and tracing makes a frame object.  A frame that is being cleared would look
         * alike; 3.11.7 unlinks it first, so this is a second check. */
        if ((callee == NULL || callee->is_entry) && frame->frame_obj == NULL) {
            return 0;
        }
#endif
        return visit_slots(frame, from, frame->stacktop, visit, arg);
    }
    int stop = visit_slots(frame, from, code->co_nlocalsplus, visit, arg);

    return stop != 0 ? stop : visit_operands(frame, code, callee, uncalled, visit, arg);
}

int
plus_frames_visit_unnamed(Frame *frame, Frame *callee, bool uncalled, visitproc visit, void *arg)
{
    PyCodeObject *code = plus_pyframe_code(frame);

    if (code == NULL || frame->owner != FRAME_OWNED_BY_THREAD) {
        return 0;
    }
    int stop = visit_from(code->co_nlocalsplus, frame, code, callee, uncalled, visit, arg);
    if (stop != 0) {
        return stop;
    }
    Py_VISIT(plus_pyframe_function(frame));
    Py_VISIT(frame->frame_obj);
    return 0;
}

int
plus_frames_visit_waiting(Frame *frame, visitproc visit, void *arg)
{
    PyCodeObject *code = plus_pyframe_code(frame);

    if (code == NULL || frame->owner != FRAME_OWNED_BY_THREAD || frame->stacktop >= 0) {
        return 0;
    }
    int bottom = code->co_nlocalsplus;
    return visit_slots(frame, bottom, bottom + plus_stack_depth_waiting(code, offset_of(frame)),
                       visit, arg);
}

static int
visit_frame(Frame *frame, Frame *callee, bool uncalled, visitproc visit, void *arg)
{
    PyCodeObject *code = plus_pyframe_code(frame);

    if (code != NULL) {
        int stop = visit_from(0, frame, code, callee, uncalled, visit, arg);
        if (stop != 0) {
            return stop;
        }
    }
    Py_VISIT(plus_pyframe_function(frame));
    Py_VISIT(code);
    Py_VISIT(frame->f_locals);
    Py_VISIT(frame->frame_obj);
    return 0;
}

int
plus_frames_visit(const struct plus_frames *frames, visitproc visit, void *arg)
{
    Frame *frame, *callee = NULL;

    for (Frame *home = frames->top; home != NULL; home = frame->previous) {
        frame = plus_frames_located(frames, home);
        if (!plus_pyframe_is_python(frame)) {
            continue;
        }
        if (frame->owner == FRAME_OWNED_BY_THREAD) {
            int stop = visit_frame(frame, callee, frames->uncalled, visit, arg);
            if (stop != 0) {
                return stop;
            }
        }
        callee = frame;
    }
    return 0;
}

#endif

/* ---- reading a frame ------------------------------------------------------------------------- */

struct plus_frames
plus_frames_of_thread(PyThreadState *tstate)
{
    return (struct plus_frames){.top = plus_pyframe_top(tstate)};
}

int
plus_frames_each(const struct plus_frames *frames, int (*each)(PyCodeObject *, int, void *),
                 void *arg)
{
    for (Frame *home = frames->top, *frame; home != NULL; home = frame->previous) {
        frame = plus_frames_located(frames, home);
        if (plus_pyframe_has_begun(frame)) {
            int stop = each(plus_pyframe_code(frame), offset_of(frame), arg);
            if (stop != 0) {
                return stop;
            }
        }
    }
    return 0;
}

PyObject *
plus_frames_here(int *offset, const PyCodeObject *skipped)
{
    for (Frame *home = plus_pyframe_top(PyThreadState_Get()), *frame; home != NULL;
         home = frame->previous) {
        frame = plus_pyframe_at(home);
        PyCodeObject *code = plus_pyframe_code(frame);
        if (code != NULL && code != skipped && !_PyFrame_IsIncomplete(frame)) {
            *offset = offset_of(frame);
            return Py_NewRef((PyObject *)code);
        }
    }
    return NULL;
}

PyObject *
plus_frames_operand(PyFrameObject *object, int index)
{
    Frame *frame = plus_pyframe_of(object);
    PyCodeObject *code = plus_pyframe_code(frame);

    if (code == NULL || index < 0 || index >= code->co_stacksize) {
        return NULL;
    }
    return Py_XNewRef(plus_pyframe_variable(frame, code->co_nlocalsplus + index));
}

const size_t plus_frames_stand_in_bytes = sizeof(Frame);

Frame *
plus_frames_stand_in(void *memory, PyCodeObject *code, Frame *previous)
{
    Frame *frame = memory;

#if PY_VERSION_HEX >= 0x030E0000
    frame->f_executable = PyStackRef_FromPyObjectBorrow((PyObject *)code);
    frame->stackpointer = frame->localsplus; /* empty, as in a frame that has called C code */
#elif PY_VERSION_HEX >= 0x030D0000
    frame->f_executable = (PyObject *)code;
#else
    frame->f_code = code;
#endif
    frame->owner = FRAME_OWNED_BY_THREAD;
    frame->previous = previous;
    return frame;
}

int
plus_frames_line(PyCodeObject *code, int offset)
{
    return PyCode_Addr2Line(code, offset);
}

/* True for the entry frame of an evaluation loop, but not for the sentinel below all frames of a thread. */
static bool
is_entry(Frame *frame, const Frame *home)
{
#if PY_VERSION_HEX >= 0x030F0000
    PyThreadState *tstate = PyInterpreterState_ThreadHead(PyInterpreterState_Get());

    for (; tstate != NULL && !plus_pyframe_is_python(frame); tstate = PyThreadState_Next(tstate)) {
        if (PLUS_AT(PLUS_FACT_FRAMES, tstate)->base_frame == home) {
            return false;
        }
    }
#endif
#if PY_VERSION_HEX >= 0x030C0000
    return !plus_pyframe_is_python(frame);
#else
    return frame->is_entry;
#endif
}

int
plus_frames_nesting(const struct plus_frames *frames)
{
    int entries = 0;

    for (Frame *home = frames->top, *frame; home != NULL; home = frame->previous) {
        frame = plus_frames_located(frames, home);
        entries += is_entry(frame, home);
    }
    return entries > 0 ? entries - 1 : 0;
}

bool
plus_frames_may_move(const struct plus_frames *frames)
{
    for (Frame *home = frames->top, *frame; home != NULL; home = frame->previous) {
        frame = plus_frames_located(frames, home);
        if (plus_pyframe_is_python(frame) &&
            (frame->owner != FRAME_OWNED_BY_THREAD || frame->frame_obj != NULL)) {
            return false;
        }
    }
    return true;
}

/* PyThreadState_GetFrame() is the only exported function that makes a frame object, and it starts at the thread's
 * current frame.  Making one allocates; up to 3.11 a collection can start then and run finalisers, which must not
 * happen on top of another tasklet's frames. */
PyObject *
plus_frames_object(const struct plus_frames *frames)
{
    PyThreadState *tstate = PyThreadState_Get();
    Frame **current = plus_pystate_current_frame(tstate), *kept = *current;

    if (frames->top == NULL || frames->moved.moved != 0) {
        return NULL;
    }
    int collects = PyGC_Disable();
    *current = frames->top;
    PyFrameObject *made = PyThreadState_GetFrame(tstate);
    *current = kept;
    if (collects) {
        PyGC_Enable();
    }
    return (PyObject *)made;
}

/* ---- proof ----------------------------------------------------------------------------------- */

static bool
read_frame(Frame *frame, Frame *copy)
{
    return plus_read_memory((uintptr_t)plus_pyframe_at(frame), copy, sizeof *copy);
}

#if PY_VERSION_HEX >= 0x030E0000
#define REFERENCE_BITS(reference) ((reference).bits & ~(uintptr_t)3)
#define CODE_BITS(frame) REFERENCE_BITS((frame)->f_executable)
#elif PY_VERSION_HEX >= 0x030D0000
#define REFERENCE_BITS(reference) ((uintptr_t)(reference))
#define CODE_BITS(frame) ((uintptr_t)(frame)->f_executable)
#else
#define REFERENCE_BITS(reference) ((uintptr_t)(reference))
#define CODE_BITS(frame) ((uintptr_t)(frame)->f_code)
#endif

struct look {
    bool frames, operands;
};

/* True if the chain ends; the last frame may be any thread's sentinel. */
static bool
chain_ends(Frame *frame)
{
    Frame copy;

    for (int count = 0; count < 100000; count++) {
        if (frame == NULL) {
            return true;
        }
        if (!read_frame(frame, &copy)) {
            return false;
        }
        frame = copy.previous;
    }
    return false;
}

/* As plus_pyframe_top(), but read through the kernel; NULL if a pointer on the way is invalid. */
static Frame *
top_of(PyThreadState *tstate)
{
#if PY_VERSION_HEX >= 0x030D0000
    return plus_pyframe_top(tstate);
#else
    _PyCFrame copy;

    return plus_read_memory((uintptr_t)PLUS_AT(PLUS_FACT_FRAMES, tstate)->cframe, &copy,
                            sizeof copy)
               ? copy.current_frame
               : NULL;
#endif
}

/* Check each pointer before it is followed. */
static void
look_at_frame(const struct plus_probe_call *call, void *arg)
{
    PyThreadState *tstate = PyThreadState_Get();
    PyFrameObject *object = PyThreadState_GetFrame(tstate);
    Frame *top = top_of(tstate), copy;
    struct look *found = arg;

    if (object == NULL) {
        PyErr_NoMemory();
        return;
    }
    found->frames = top != NULL && read_frame(top, &copy) &&
                    CODE_BITS(&copy) == (uintptr_t)call->code && copy.frame_obj == object &&
                    copy.owner == FRAME_OWNED_BY_THREAD && copy.previous != NULL &&
                    REFERENCE_BITS(copy.localsplus[0]) == (uintptr_t)call->first && chain_ends(top);
    if (found->frames) {
        found->frames = offset_of(plus_pyframe_at(top)) == PyFrame_GetLasti(object);
    }
    Py_DECREF(object);
}

const char *
plus_probe_frames(void)
{
    struct look found = {false};

    if (!plus_memory_is_readable()) {
        return PLUS_MEMORY_UNREADABLE;
    }
    return plus_probe_call(look_at_frame, &found) == 0 && found.frames
               ? NULL
               : "the frames of running functions are not laid out as expected";
}

/* True if the frame's operands, counted from `from`, are `expected`; NULL in `expected` matches any. */
static bool
has_operands(Frame *frame, const PyCodeObject *code, int from, PyObject *const *expected, int count)
{
    for (int i = 0; i < count; i++) {
        __typeof__(frame->localsplus[0]) word;
        uintptr_t place = (uintptr_t)&frame->localsplus[code->co_nlocalsplus + from + i];

        if (!plus_read_memory(place, &word, sizeof word) ||
            (expected[i] != NULL && REFERENCE_BITS(word) != (uintptr_t)expected[i])) {
            return false;
        }
    }
    return true;
}

static void
look_at_operands(const struct plus_probe_call *call, void *arg)
{
    Frame *frame = PLUS_AT(PLUS_FACT_OPERANDS, plus_pyframe_top(PyThreadState_Get()));
    /* `first`, and the call; the order of callable and NULL depends on the version. */
#if PY_VERSION_HEX >= 0x030D0000
    PyObject *const expected[] = {call->first, call->callable, NULL, call->first, call->first};
#else
    PyObject *const expected[] = {call->first, NULL, call->callable, call->first, call->first};
#endif
    struct look *found = arg;
    int count = (int)(sizeof expected / sizeof expected[0]);

    found->operands = has_operands(frame, call->code, 0, expected, count);
#if PY_VERSION_HEX >= 0x030E0000
    found->operands &=
        frame->stackpointer >= &frame->localsplus[call->code->co_nlocalsplus + 1] &&
        frame->stackpointer <= &frame->localsplus[call->code->co_nlocalsplus + count];
#endif
    const struct plus_call_site *site = plus_stack_depth_at(call->code, offset_of(frame));

    found->operands &= site != NULL && site->depth == count && site->base == 1 &&
                       site->unpacked < 0 && site->kind == PLUS_SITE_CALL;
}

const char *
plus_probe_operands(void)
{
    const char *refusal = plus_fact_refusal(PLUS_FACT_FRAMES);
    struct look found = {false};

    if (refusal != NULL) {
        return refusal;
    }
    return plus_probe_call(look_at_operands, &found) == 0 && found.operands
               ? NULL
               : "operands of running functions do not lie where expected";
}
