/* Frames as tuples; frame_capture.h describes the tuple.
 *
 * A chain is captured whole or not at all.  Between a function and the function that it called there may be
 *
 *     nothing          the evaluation loop went from one to the other: a call, or a generator that a `for`, a `yield
 *                      from` or an `await` goes on with
 *     C code           which is lost when the chain goes on elsewhere.  It is accepted if it does only what the loop
 *                      would have done: the callable is the function that runs, a method of it, a partial of it, or an
 *                      object with it as __call__; or the iterator of the `for` is the generator that runs.  (The loop
 *                      calls through C until a place is hot.)  Other C code is refused by name.
 *
 * The innermost function is either in a call of a C function of ours, which returns what the tasklet gets next, or
 * between two instructions, in a watchdog's callback.
 *
 * The end of a `with` calls __exit__ through C code too: up to 3.13 if there is no exception, in each version if there
 * is one.
 *
 * A class is called through C code or (3.12) through a shim frame of the interpreter.  Both keep the new object and
 * return it in place of the result of __init__.  When the chain goes on, a Python function between the two
 * (`initialise`) does the same.
 *
 * The operands that the call in progress takes are not captured.  Their number follows from the bytecode
 * (stack_depth.c), even if the frame tells its depth (3.14): the loop removes them before it goes on with a function, C
 * code afterwards.
 *
 * Up to 3.13 the operands of a finished call may have been freed while code runs because they were dropped: a
 * finaliser, a callback, a generator that is closed.  So the callable of a frame with another function above it is read
 * only if it is found in a variable, a global or a builtin too (called_by).
 *
 * No Python code runs between the first look at a frame and the last: it might end the tasklet that owns the frames.
 * So names are searched without comparisons (a key may have its own __eq__), the collector is off, and an object that
 * an error names is kept alive before its name is asked for.
 */
#include "../../_base/rows.h"
#include "../frames/pyframe.h"

#include "../frames/stack_depth.h"
#include "../objects/layouts.h"
#include "frame_build.h"
#include "frame_capture.h"

#include "../../_base/memory/own_memory.h"

typedef struct _PyInterpreterFrame Frame;

struct capture {
    const struct plus_frames *frames;
    const struct plus_capture_ends *ends;
    PyObject *error;
};

/* One frame; the walk goes from the innermost outwards. */
struct standing {
    Frame *frame, *home; /* the address to read it at, and the address that pointers hold */
    PyCodeObject *code;
    const struct plus_call_site *site;
    bool by_c; /* true if C code called it */
    int next;  /* byte offset of the next instruction if the frame is between two; else -1 */
    /* The object that this __init__ initialises and that the call of its class returns; borrowed,
     * or NULL. */
    PyObject *made;
};

static bool
is_generators(const Frame *frame)
{
    return frame->owner == FRAME_OWNED_BY_GENERATOR;
}

/* ---- refusals ---------------------------------------------------------------------------------- */

static PyObject *
name_of(PyObject *callable)
{
    PyObject *name = PyObject_GetAttrString(callable, "__qualname__");

    if (name == NULL || !PyUnicode_Check(name)) {
        PyErr_Clear();
        Py_XSETREF(name, PyUnicode_FromString(Py_TYPE(callable)->tp_name));
    }
    return name;
}

static int
line_of(const struct standing *at)
{
    return plus_frames_line(at->code,
                            _PyInterpreterFrame_LASTI(at->frame) * (int)sizeof(_Py_CODEUNIT));
}

/* Set the error "`what` is in the middle of a function"; always -1. */
static int
refuse(const struct capture *capture, const struct standing *at, const char *what)
{
    PyErr_Format(capture->error, "%s is in the middle of %U() line %d", what, at->code->co_qualname,
                 line_of(at));
    return -1;
}

/* Runs Python code, so no frame may be read after it. */
static int
refuse_call(const struct capture *capture, const struct standing *at, PyObject *callable)
{
    PyObject *outer = Py_NewRef(at->code->co_qualname), *name = NULL;
    int line = line_of(at);

    if (callable != NULL) {
        Py_INCREF(callable);
        name = name_of(callable);
    }
    if (name == NULL) {
        PyErr_Format(capture->error, "C code is in the middle of %U() line %d", outer, line);
    }
    else {
        PyErr_Format(capture->error, "%U() (%s) is in the middle of %U() line %d", name,
                     PyType_Check(callable) ? "a class" : "C function", outer, line);
    }
    Py_XDECREF(name);
    Py_XDECREF(callable);
    Py_DECREF(outer);
    return -1;
}

/* ---- operands ----------------------------------------------------------------------------------- */

/* The operand, borrowed; NULL if the slot is empty or holds no object. */
static PyObject *
operand(const struct standing *at, int index)
{
    int place = at->code->co_nlocalsplus + index;

#if PY_VERSION_HEX >= 0x030E0000
    _PyStackRef reference = at->frame->localsplus[place];

    if (at->frame->stackpointer == NULL ||
        place >= at->frame->stackpointer - at->home->localsplus || PyStackRef_IsNull(reference) ||
        PyStackRef_IsTaggedInt(reference)) {
        return NULL;
    }
    PyObject *there = PyStackRef_AsPyObjectBorrow(reference);
    return there != NULL && Py_REFCNT(there) > 0 ? there : NULL;
#else
    return at->frame->localsplus[place];
#endif
}

/* The callable of the call in progress of the innermost frame. */
static PyObject *
called_at(const struct standing *at)
{
    PyObject *lowest = operand(at, at->site->base);

    /* Up to 3.12 the slot below the callable holds NULL unless a method is called. */
    return PY_VERSION_HEX < 0x030D0000 && lowest == NULL ? operand(at, at->site->base + 1) : lowest;
}

/* The iterator of a `for`, or the receiver of a SEND. */
static PyObject *
asked_at(const struct standing *at)
{
    return operand(at, at->site->base);
}

#if PY_VERSION_HEX < 0x030E0000

static bool
has_variable(const struct standing *at, PyObject *op)
{
    for (int i = 0; i < at->code->co_nlocalsplus; i++) {
        PyObject *value = plus_pyframe_variable(at->frame, i);

        if (value == op || (value != NULL && PyCell_Check(value) && PyCell_GET(value) == op)) {
            return true;
        }
    }
    return false;
}

/* True if a global or builtin name refers to the object. */
static bool
has_name(const struct standing *at, PyObject *op)
{
    PyObject *places[] = {at->frame->f_globals, at->frame->f_builtins};

    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        PyObject *value;
        Py_ssize_t position = 0;

        while (PyDict_CheckExact(places[i]) && PyDict_Next(places[i], &position, NULL, &value)) {
            if (value == op) {
                return true;
            }
        }
    }
    return false;
}

static PyObject *
first_of(const struct standing *at)
{
    PyObject *first = at->code->co_argcount > 0 ? plus_pyframe_variable(at->frame, 0) : NULL;

    return first != NULL && PyCell_Check(first) ? PyCell_GET(first) : first;
}

static bool
is_held(const struct standing *outer, const struct standing *inner, PyObject *op)
{
    PyObject *first = first_of(inner);

    return op == plus_pyframe_function(inner->frame) || op == first ||
           (first != NULL && op == (PyObject *)Py_TYPE(first)) || has_variable(outer, op) ||
           has_variable(inner, op) || has_name(outer, op);
}

#else
#define is_held(outer, inner, op) true
#endif

#if PY_VERSION_HEX < 0x030E0000
/* True if the callable is a bound method that only the operand stack holds, as in `super().__init__(*args)`, which C
 * code calls: it calls the method's function and returns its result.  If that call is over, the method was freed before
 * `args`, possibly with its memory page; so it is read through the kernel. */
static bool
is_bound(const struct standing *outer, const struct standing *inner)
{
    PyMethodObject method;
    PyObject *callable = outer->site->unpacked >= 0 ? called_at(outer) : NULL;

    return callable != NULL && plus_read_memory((uintptr_t)callable, &method, sizeof(method)) &&
           Py_REFCNT(&method) > 0 && method.ob_base.ob_type == &PyMethod_Type &&
           method.im_func == plus_pyframe_function(inner->frame) &&
           method.im_self == first_of(inner);
}
#else
#define is_bound(outer, inner) false
#endif

/* The callable that `outer` calls while `inner` runs; NULL if it may have been freed. */
static PyObject *
called_by(const struct standing *outer, const struct standing *inner)
{
    PyObject *callable = called_at(outer);

    return callable != NULL && is_held(outer, inner, callable) ? callable : NULL;
}

static PyObject *
generator_of(Frame *frame)
{
    return (PyObject *)_PyFrame_GetGenerator(frame);
}

/* The number of variables and operands that stay during the call; -1 if the frame contradicts it. */
static int
live_count(const struct standing *at)
{
    int variables = at->code->co_nlocalsplus;
    int kept = at->next >= 0 ? plus_stack_depth_before(at->code, at->next) : at->site->kept;
    int most = at->next >= 0 ? kept : at->site->depth;

#if PY_VERSION_HEX >= 0x030E0000
    ptrdiff_t there = at->frame->stackpointer == NULL
                          ? -1
                          : at->frame->stackpointer - at->home->localsplus - variables;
#else
    int there = at->frame->stacktop < 0 ? kept : at->frame->stacktop - variables;
#endif
    return kept < 0 || there < kept || there > most ? -1 : variables + kept;
}

/* True if the operands of the call have been popped, so that an evaluation loop could return to the frame. */
static bool
operands_are_gone(const struct standing *at)
{
#if PY_VERSION_HEX >= 0x030E0000
    return at->frame->stackpointer != NULL && at->frame->stackpointer - at->home->localsplus ==
                                                  at->code->co_nlocalsplus + at->site->kept;
#else
    return at->frame->stacktop >= 0;
#endif
}

/* ---- C code between two functions -------------------------------------------------------------- */

/* Set by plus_capture_prepare() and never freed. */
static PyObject *partial; /* the class functools.partial */
static PyObject
    *initialise; /* a function of three variables with the first one bound, at its first call */

#define PARTIALS 8 /* depth of nesting that is followed; a partial may contain itself */

/* True if calling `callable` calls `function` and returns its result. */
static bool
amounts_to(PyObject *callable, PyObject *function)
{
    for (int i = 0; i < PARTIALS && callable != NULL && (PyObject *)Py_TYPE(callable) == partial;
         i++) {
        /* A field, which keeps its value alive. */
        PyObject *inner = PyObject_GetAttrString(callable, "func");

        PyErr_Clear();
        Py_XDECREF(inner);
        callable = inner;
    }
    if (callable == function || callable == NULL) {
        return callable != NULL;
    }
    if (PyMethod_Check(callable)) {
        return PyMethod_GET_FUNCTION(callable) == function;
    }
    return !PyType_Check(callable) && !PyCFunction_Check(callable) &&
           plus_class_attribute(Py_TYPE(callable), "__call__") == function;
}

#if PY_VERSION_HEX < 0x030D0000

/* The partials with `first` as their only argument. */
struct partials {
    PyObject *first, *function;
    bool leads;           /* one calls `function`, and is referred to by more than the variable */
    bool leads_elsewhere; /* one calls something else */
};

static void
consider(struct partials *partials, PyObject *value)
{
    if (value != NULL && PyCell_Check(value)) {
        value = PyCell_GET(value);
    }
    PyObject *args = value != NULL && (PyObject *)Py_TYPE(value) == partial
                         ? PyObject_GetAttrString(value, "args") /* a field */
                         : NULL;

    if (args == NULL) {
        PyErr_Clear();
        return;
    }
    if (PyTuple_GET_SIZE(args) == 1 && PyTuple_GET_ITEM(args, 0) == partials->first) {
        bool leads = amounts_to(value, partials->function);
        partials->leads |= leads && Py_REFCNT(value) > 1;
        partials->leads_elsewhere |= !leads;
    }
    Py_DECREF(args);
}

static void
consider_all(struct partials *partials, const struct standing *at)
{
    PyObject *places[] = {at->frame->f_globals, at->frame->f_builtins};

    for (int i = 0; i < at->code->co_nlocalsplus; i++) {
        consider(partials, plus_pyframe_variable(at->frame, i));
    }
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        PyObject *value;
        Py_ssize_t position = 0;

        while (PyDict_CheckExact(places[i]) && PyDict_Next(places[i], &position, NULL, &value)) {
            consider(partials, value);
        }
    }
}

static bool
has_evaluation_hook(void)
{
    return _PyInterpreterState_GetEvalFrameFunc(PyInterpreterState_Get()) !=
           _PyEval_EvalFrameDefault;
}

/* Up to 3.12 a call without a method has its callable right below the arguments, and C code that is called may
 * temporarily overwrite it with an argument of its own: functools.partial does so if it has a single one.  So
 * `callable`, the object in that slot (which may have been freed), is either that argument or the callee:
 *
 *     not callable            it is the argument
 *     a function or method    it is the argument: the loop calls functions without C code, unless a hook is installed
 *     anything else           it may be either
 *
 * The partial itself is only found through a variable.  Returns 1 if C code only calls the function of `inner`, 0 if
 * the caller has to examine `callable`, -1 if it cannot be told. */
static int
check_partial(const struct standing *outer, const struct standing *inner)
{
    PyObject *first = operand(outer, outer->site->base + 1);

    if (outer->site->unpacked >= 0 || operand(outer, outer->site->base) != NULL || first == NULL) {
        return 0;
    }
    struct partials partials = {.first = first, .function = plus_pyframe_function(inner->frame)};

    consider_all(&partials, outer);
    if (partials.leads_elsewhere) {
        return -1;
    }
    bool alive = partials.leads || is_held(outer, inner, first);
    bool goes_directly = alive && (PyFunction_Check(first) || PyMethod_Check(first));

    if (partials.leads && (goes_directly || !PyCallable_Check(first))) {
        return has_evaluation_hook() && goes_directly ? -1 : 1;
    }
    return goes_directly && !has_evaluation_hook() ? -1 : 0;
}

#else
#define check_partial(outer, inner) 0
#endif

/* The object that `callable` has made, if it is a class and `frame` is its __init__; borrowed; else NULL. */
static PyObject *
made_by(PyObject *callable, const Frame *frame)
{
    PyTypeObject *type = (PyTypeObject *)callable;

    if (callable == NULL || !PyType_Check(callable) ||
        Py_TYPE(callable)->tp_call != PyType_Type.tp_call ||
        plus_class_attribute(type, "__init__") != plus_pyframe_function(frame) ||
        plus_pyframe_code(frame)->co_argcount == 0) {
        return NULL;
    }
    PyObject *self = plus_pyframe_variable(frame, 0);

    if (self != NULL && PyCell_Check(self)) {
        self = PyCell_GET(self);
    }
    return self != NULL && Py_TYPE(self) == type ? self : NULL;
}

#if PY_VERSION_HEX < 0x030E0000
/* True if `inner` is the __exit__ that `outer` calls at the end of a `with` without an exception.  The loop calls the
 * bound method through C code, which temporarily puts the object in the method's slot: `callable` is that object.  If C
 * code can call the object itself, it might be the callee, and call its own __exit__. */
static bool
is_end_of_with(const struct standing *outer, const struct standing *inner, PyObject *callable)
{
    PyObject *leaves =
        callable == NULL ? NULL : plus_class_attribute(Py_TYPE(callable), "__exit__");

    if (leaves == NULL || !PyFunction_Check(leaves) || outer->site->oparg != 2) {
        return false;
    }
    /* A function that was unpickled by value is not the class's, but has the same name. */
    PyCodeObject *code = (PyCodeObject *)PyFunction_GET_CODE(leaves);

    if (leaves != plus_pyframe_function(inner->frame) &&
        PyUnicode_Compare(code->co_qualname, inner->code->co_qualname) != 0) {
        return false;
    }
    for (int i = 1; i <= 3; i++) {
        if (operand(outer, outer->site->base + i) != Py_None) {
            return false;
        }
    }
    PyObject *call = plus_class_attribute(Py_TYPE(callable), "__call__");

    return call == NULL ? Py_TYPE(callable)->tp_call == NULL : PyFunction_Check(call);
}
#else
#define is_end_of_with(outer, inner, callable) false
#endif

/* 0, or -1 with the error if `inner` is not called as an evaluation loop would call it. */
static int
check_step(const struct capture *capture, const struct standing *outer, struct standing *inner)
{
    if (outer->site == NULL) {
        return refuse(capture, outer, "C code (an operator or attribute)");
    }
    if (outer->site->kind == PLUS_SITE_EXIT && !is_generators(inner->frame)) {
        /* Stays on the operand stack until the `with` is over. */
        PyObject *leaves = operand(outer, outer->site->base);

        return leaves != NULL && amounts_to(leaves, plus_pyframe_function(inner->frame))
                   ? 0
                   : refuse_call(capture, outer, leaves);
    }
    if (outer->site->kind != PLUS_SITE_CALL) {
        return is_generators(inner->frame) && asked_at(outer) == generator_of(inner->frame)
                   ? 0
                   : refuse(capture, outer, "C code (an iterator)");
    }
    if (is_generators(inner->frame)) {
        return refuse_call(capture, outer, inner->by_c ? called_by(outer, inner) : NULL);
    }
    if (inner->made != NULL || !inner->by_c || operands_are_gone(outer)) {
        return 0;
    }
    int partial_leads = check_partial(outer, inner);
    PyObject *callable = partial_leads < 0 ? NULL : called_by(outer, inner);

    if (partial_leads > 0 || is_bound(outer, inner) ||
        amounts_to(callable, plus_pyframe_function(inner->frame)) ||
        is_end_of_with(outer, inner, callable)) {
        return 0;
    }
    inner->made = made_by(callable, inner->frame);
    return inner->made != NULL ? 0 : refuse_call(capture, outer, callable);
}

/* Check, as for the call of a captured frame, the C function that the innermost frame calls. */
static int
check_end(const struct capture *capture, const struct standing *at)
{
    if (at->next >= 0) {
        return is_generators(at->frame)
                   ? refuse(capture, at, "a watchdog that interrupted a generator")
                   : 0;
    }
    if (capture->frames->uncalled) {
        return refuse(capture, at,
                      PY_VERSION_HEX < 0x030C0000
                          ? "a watchdog (it can be pickled from 3.12 on), a finaliser "
                            "or a callback"
                          : "a finaliser or a callback");
    }
    if (at->site == NULL) {
        return refuse(capture, at, "C code (an operator or attribute)");
    }
    if (at->site->kind == PLUS_SITE_FOR && capture->ends->iterator(asked_at(at))) {
        return 0;
    }
    PyObject *callable = at->site->kind == PLUS_SITE_CALL ? called_at(at) : NULL;

    return callable != NULL && capture->ends->call(callable) ? 0
                                                             : refuse_call(capture, at, callable);
}

static int
check_function(const struct capture *capture, const struct standing *at)
{
    PyObject *function = plus_pyframe_function(at->frame);

    if (function == NULL || !PyFunction_Check(function)) {
        return refuse(capture, at, "a class being called");
    }
    if (PyFunction_GET_CODE(function) != (PyObject *)at->code) {
        return refuse(capture, at, "code that the function does not have any more");
    }
    if (!(at->code->co_flags & CO_OPTIMIZED)) {
        PyErr_Format(capture->error, "%U is no function: a module or a class is being executed",
                     at->code->co_qualname);
        return -1;
    }
    if (at->code->co_flags & CO_ASYNC_GENERATOR) {
        PyErr_Format(capture->error, "%U() is an asynchronous generator", at->code->co_qualname);
        return -1;
    }
    return 0;
}

/* ---- the tuples -------------------------------------------------------------------------------- */

/* The kind at `place`; *value becomes a new reference, or NULL if the kind is 'n' or there is no memory (with an
 * exception). */
static char
take(const Frame *frame, int place, PyObject **value)
{
#if PY_VERSION_HEX >= 0x030E0000
    _PyStackRef reference = frame->localsplus[place];

    if (PyStackRef_IsNull(reference)) {
        *value = NULL;
        return 'n';
    }
    if (PyStackRef_IsTaggedInt(reference)) {
        *value = PyLong_FromSsize_t(PyStackRef_UntagInt(reference));
        return 'i';
    }
    *value = Py_XNewRef(PyStackRef_AsPyObjectBorrow(reference));
#else
    *value = Py_XNewRef(frame->localsplus[place]);
#endif
    return *value == NULL ? 'n' : 'o';
}

/* Fill `kinds` and a list of values; the number of values, or -1 with an exception. */
static int
take_all(const Frame *frame, int count, char *kinds, PyObject **values)
{
    int taken = 0;

    for (int i = 0; i < count; i++) {
        kinds[i] = take(frame, i, &values[taken]);
        if (kinds[i] == 'i' && values[taken] == NULL) {
            return -1;
        }
        taken += kinds[i] != 'n';
    }
    return taken;
}

/* (owner, offset, kinds, values, handled) */
static PyObject *
captured(const Frame *frame, PyObject *owner, int offset, int count, PyObject *handled)
{
    PyObject *kinds = PyBytes_FromStringAndSize(NULL, count);
    PyObject *all = PyTuple_New(count), *result = NULL;
    int taken = -1;

    if (kinds != NULL && all != NULL) {
        taken = take_all(frame, count, PyBytes_AS_STRING(kinds), &PyTuple_GET_ITEM(all, 0));
    }
    if (taken >= 0 && taken < count) {
        Py_SETREF(all, PyTuple_GetSlice(all, 0, taken));
        taken = all == NULL ? -1 : taken;
    }
    if (taken >= 0) {
        result =
            Py_BuildValue("OiOOO", owner, offset, kinds, all, handled != NULL ? handled : Py_None);
    }
    Py_XDECREF(kinds);
    Py_XDECREF(all);
    return result;
}

static PyObject *
capture_one(const struct capture *capture, const struct standing *at)
{
    PyObject *owner = plus_pyframe_function(at->frame), *handled = NULL;
    int count = live_count(at);

    if (check_function(capture, at) < 0) {
        return NULL;
    }
    if (count < 0) {
        (void)refuse(capture, at, "an operand stack that is not as expected");
        return NULL;
    }
    if (is_generators(at->frame)) {
        owner = generator_of(at->frame);
        handled = ((PyGenObject *)owner)->gi_exc_state.exc_value;
    }
    return captured(at->frame, owner, at->next >= 0 ? ~at->next : at->site->offset, count, handled);
}

/* ---- the chain --------------------------------------------------------------------------------- */

static bool
is_called_by_c(const Frame *frame, bool after_entry)
{
#if PY_VERSION_HEX >= 0x030C0000
    return after_entry;
#else
    return frame->is_entry;
#endif
}

/* True for the shim frame that the interpreter puts between the call of a class and its __init__. */
static bool
is_initialising(const Frame *frame)
{
    const PyObject *function = plus_pyframe_is_python(frame) ? plus_pyframe_function(frame) : NULL;
    const PyCodeObject *code = plus_pyframe_code(frame);

    return code != NULL && code->co_nlocalsplus == 0 &&
           (function == NULL || !PyFunction_Check(function));
}

/* The next Python frame from *home on; *home moves behind it.  If a shim frame precedes it, *made becomes the object
 * being initialised. */
static bool
next_standing(const struct plus_frames *frames, Frame **home, struct standing *at, PyObject **made)
{
    for (Frame *frame; *home != NULL; *home = frame->previous) {
        frame = plus_frames_located(frames, *home);
        if (!plus_pyframe_has_begun(frame)) {
            if (made != NULL && is_initialising(frame)) {
                *made = plus_pyframe_variable(frame, 0); /* operand 0: the shim has no variables */
            }
            continue;
        }
        int offset = _PyInterpreterFrame_LASTI(frame) * (int)sizeof(_Py_CODEUNIT);

        *at = (struct standing){
            .frame = frame, .home = *home, .code = plus_pyframe_code(frame), .next = -1};
        at->site = plus_stack_depth_around(at->code, offset);
        *home = frame->previous;
        bool entry = *home == NULL || !plus_pyframe_is_python(plus_frames_located(frames, *home));
        at->by_c = is_called_by_c(frame, entry);
        return true;
    }
    return false;
}

int
plus_capture_prepare(PyObject *function)
{
    if (!PyFunction_Check(function)) {
        PyErr_SetString(PyExc_TypeError, "a function is required");
        return -1;
    }
    PyObject *module = PyImport_ImportModule("functools");
    PyObject *found = module == NULL ? NULL : PyObject_GetAttrString(module, "partial");

    Py_XDECREF(module);
    if (found == NULL) {
        return -1;
    }
    Py_XSETREF(partial, found);
    Py_XSETREF(initialise, Py_NewRef(function));
    return 0;
}

/* A captured frame of `initialise` for the object.  A program that has pickled nothing has no such function: then its
 * tasklets keep their C stacks. */
static PyObject *
capture_made(PyObject *made)
{
    if (initialise == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "nothing stands for the call of a class yet");
        return NULL;
    }
    PyCodeObject *code = (PyCodeObject *)PyFunction_GET_CODE(initialise);
    const struct plus_call_site *site = NULL;
    int offset = 0, end = (int)Py_SIZE(code) * (int)sizeof(_Py_CODEUNIT);

    for (; site == NULL && offset < end; offset += (int)sizeof(_Py_CODEUNIT)) {
        const struct plus_call_site *found = plus_stack_depth_at(code, offset);
        site = found != NULL && found->kept == 0 ? found : NULL;
    }
    return site == NULL ? NULL
                        : Py_BuildValue("(Oiy(OO)O)", initialise, site->offset, "oon", made,
                                        Py_None, Py_None);
}

static int
capture_chain(const struct capture *capture, PyObject *called, PyObject *list)
{
    Frame *home = capture->frames->top;
    struct standing inner, outer;
    bool more = next_standing(capture->frames, &home, &inner, NULL);

    if (more && capture->frames->between) {
        /* The instruction of the frame is a jump's target; or, because it may be executed again, the jump (3.13) or the
         * RESUME of the function. */
        inner.next = plus_first_unit(inner.code, _PyInterpreterFrame_LASTI(inner.frame)) *
                     (int)sizeof(_Py_CODEUNIT);
        inner.site = NULL;
    }
    if (more && check_end(capture, &inner) < 0) {
        return -1;
    }
    while (more) {
        if (plus_append_new(list, capture_one(capture, &inner)) < 0) {
            return -1;
        }
        more = next_standing(capture->frames, &home, &outer, &inner.made);
        if (more && check_step(capture, &outer, &inner) < 0) {
            return -1;
        }
        if (inner.made != NULL && plus_append_new(list, capture_made(inner.made)) < 0) {
            return -1;
        }
        if (!more && called != NULL && !amounts_to(called, plus_pyframe_function(inner.frame))) {
            return refuse_call(capture, &inner, called);
        }
        inner = outer;
    }
    return PyList_Reverse(list);
}

PyObject *
plus_frames_capture(const struct plus_frames *frames, PyObject *called,
                    const struct plus_capture_ends *ends, PyObject *error)
{
    struct capture capture = {frames, ends, error};
    int collects = PyGC_Disable(); /* 3.11 collects at any allocation */
    PyObject *list = PyList_New(0), *result = NULL;

    if (list != NULL && capture_chain(&capture, called, list) == 0) {
        result = PyList_AsTuple(list);
    }
    Py_XDECREF(list);
    if (collects) {
        PyGC_Enable();
    }
    return result;
}

/* ---- generators -------------------------------------------------------------------------------- */

PyObject *
plus_generator_capture(PyObject *generator, PyObject *error)
{
    PyGenObject *gen = (PyGenObject *)generator;
    Frame *frame = plus_generator_frame(generator);
    int state = gen->gi_frame_state;

    if (FRAME_STATE_FINISHED(state)) {
        Py_RETURN_NONE;
    }
    if (state == FRAME_EXECUTING) {
        PyErr_Format(error, "%R is being executed", generator);
        return NULL;
    }
#if PY_VERSION_HEX >= 0x030E0000
    ptrdiff_t count = frame->stackpointer - frame->localsplus;
#else
    int count = frame->stacktop;
#endif
    struct capture capture = {.error = error};
    struct standing at = {
        .frame = frame, .home = frame, .code = plus_pyframe_code(frame), .next = -1};

    if (at.code == NULL || count < 0 || check_function(&capture, &at) < 0) {
        if (!PyErr_Occurred()) {
            PyErr_Format(error, "%R is not laid out as expected", generator);
        }
        return NULL;
    }
    int offset = _PyInterpreterFrame_LASTI(frame) * (int)sizeof(_Py_CODEUNIT);
    int collects = PyGC_Disable(); /* 3.11 collects at any allocation */
    PyObject *one = captured(frame, Py_None, offset, (int)count, gen->gi_exc_state.exc_value);
    PyObject *all = one == NULL
                        ? NULL
                        : Py_BuildValue("OOOOi", PyTuple_GET_ITEM(one, 1), PyTuple_GET_ITEM(one, 2),
                                        PyTuple_GET_ITEM(one, 3), PyTuple_GET_ITEM(one, 4), state);

    Py_XDECREF(one);
    if (collects) {
        PyGC_Enable();
    }
    return all;
}

PyObject *
plus_generator_function(PyObject *generator)
{
    PyObject *function = FRAME_STATE_FINISHED(((PyGenObject *)generator)->gi_frame_state)
                             ? NULL
                             : plus_pyframe_function(plus_generator_frame(generator));

    return function != NULL && PyFunction_Check(function) ? Py_NewRef(function) : NULL;
}
