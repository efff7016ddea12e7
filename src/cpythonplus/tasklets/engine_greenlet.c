/* pystate.h, stacks.h and switch.h on greenlet: for machines without a switch of our own.
 *
 * greenlet lets all of them run on the thread's one C stack, and copies the parts that overlap to the heap and
 * back; it saves and restores frames, exception state and recursion counters.  What it leaves alone (tracing), or
 * keeps where we cannot see it (the context), is exchanged here.  "Stack" is a token here:
 *
 *     tasklet -- stack (a slab of its own) -- greenlet -- its parent: the thread's root
 *
 * A greenlet that begins is put below what is on the C stack at that moment, and stays there: of tasklets that
 * begin from inside of each other, the thousandth would have no room.  So all begin from one shallow place, the
 * *spring*: a greenlet of its own that only starts others.  A greenlet ends by returning, which makes its parent
 * go on; so the parent is set to where the next tasklet is, or to the spring if that has not begun.
 *
 * Rejected: greenlet.h.  All that it gives is these offsets into a table, and it would have to be there wherever
 * this is built.  Rejected: keeping greenlets of tasklets that have ended for the next ones.  They can be told to
 * end only by an exception, from their own thread.
 */
#include "pystate.h"

#include "frames.h"

#if !PLUS_HAS_SWITCH

#include <stdlib.h>
#include <unistd.h>

#ifndef __EXCEPTIONS
#error "compile with -fexceptions, for the clean-up in greenlet_main"
#endif

/* greenlet's table of functions, "greenlet._C_API"; the places in it are part of its binary interface. */
enum { NEW = 3, GET_CURRENT = 4, THROW = 5, SWITCH = 6, SET_PARENT = 7 };

static void **api;

#define GREENLET_NEW(run, parent) (((PyObject * (*)(PyObject *, PyObject *)) api[NEW])(run, parent))
#define GREENLET_CURRENT() (((PyObject * (*)(void)) api[GET_CURRENT])())
#define GREENLET_SWITCH(to, args)                                                                  \
    (((PyObject * (*)(PyObject *, PyObject *, PyObject *)) api[SWITCH])(to, args, NULL))
#define GREENLET_THROW(to, type, value, traceback)                                                 \
    (((PyObject * (*)(PyObject *, PyObject *, PyObject *, PyObject *))                             \
          api[THROW])(to, type, value, traceback))
#define GREENLET_SET_PARENT(greenlet, parent)                                                      \
    (((int (*)(PyObject *, PyObject *))api[SET_PARENT])(greenlet, parent))

struct plus_slab {
    struct plus_stack stack;
    struct plus_slab *next, *prev; /* in the pool, oldest first; prev of the first: the last one */
    PyObject *greenlet;
};

/* Of the thread; NULL until its first tasklet begins. */
static _Thread_local struct {
    PyObject *root, *spring;
    PyObject *start;            /* what the spring is to start (borrowed) */
    struct plus_pystate *going; /* whose place we are switching to; NULL: nobody's, we are there */
    struct plus_pystate
        *here; /* of the tasklet that runs; NULL: main, and there was no other yet */
} own;

const char plus_pystate_engine[] = "greenlet";

const char *
plus_pystate_start(void)
{
    if (api == NULL) {
        api = PyCapsule_Import("greenlet._C_API", 0);
    }
    if (api == NULL) {
        PyErr_Clear();
        return "built to work on greenlet, which is not installed (pip install greenlet)";
    }
    return NULL;
}

/* ---- stacks.h: tokens ------------------------------------------------------------------------- */

static void (*entry)(void);

/* pthread_exit(), which daemon threads call at the interpreter's end up to 3.13, unwinds the stack.  What lies
 * above a greenlet's part of it is not what was there when it began: the thread waits here for the process's end. */
static void
stop_unwinding(const bool *unwinding)
{
    while (*unwinding) {
        pause();
    }
}

static PyObject *
greenlet_main(PyObject *module, PyObject *ignored)
{
    __attribute__((cleanup(stop_unwinding))) bool unwinding = true;

    entry();
    unwinding = false;
    Py_RETURN_NONE;
}

static PyMethodDef greenlet_main_def = {"tasklet", greenlet_main, METH_NOARGS, NULL};

static PyObject *
spring_main(PyObject *module, PyObject *ignored)
{
    while (own.start != NULL) {
        PyObject *start = own.start;

        own.start = NULL;
        PyObject *result = GREENLET_SWITCH(start, NULL);

        PyErr_Clear(); /* the thread ends, or a tracer of greenlet's has raised */
        Py_XDECREF(result);
    }
    Py_RETURN_NONE;
}

static PyMethodDef spring_main_def = {"spring", spring_main, METH_NOARGS, NULL};

static PyObject *
make_greenlet(PyMethodDef *def, PyObject *parent)
{
    PyObject *function = PyCFunction_New(def, NULL);
    PyObject *greenlet = function != NULL ? GREENLET_NEW(function, parent) : NULL;

    Py_XDECREF(function);
    return greenlet;
}

/* Gives the greenlet from which all of the thread descend. */
static PyObject *
find_root(void)
{
    PyObject *greenlet = GREENLET_CURRENT();

    while (greenlet != NULL) {
        PyObject *parent = PyObject_GetAttrString(greenlet, "parent");

        if (parent == Py_None) {
            Py_DECREF(parent);
            break;
        }
        Py_SETREF(greenlet, parent);
    }
    return greenlet;
}

static bool
begin_thread(void)
{
    if (own.spring == NULL) {
        Py_XSETREF(own.root, find_root());
        own.spring = own.root != NULL ? make_greenlet(&spring_main_def, own.root) : NULL;
    }
    return own.spring != NULL;
}

void
plus_pystate_thread_end(void)
{
    own.start = NULL;
    own.here = NULL;
    Py_CLEAR(own.spring); /* ends by GreenletExit */
    Py_CLEAR(own.root);
}

struct plus_stack *
plus_stack_take(struct plus_stack_pool *pool, void *owner)
{
    struct plus_slab *slab = calloc(1, sizeof(*slab));

    if (slab == NULL) {
        return NULL;
    }
    /* A collection could kill a tasklet, and so begin the one that this is for. */
    int collecting = PyGC_Disable();

    slab->greenlet = begin_thread() ? make_greenlet(&greenlet_main_def, own.root) : NULL;
    if (collecting) {
        PyGC_Enable();
    }
    if (slab->greenlet == NULL) {
        PyErr_Clear(); /* the caller says that there is no memory */
        free(slab);
        return NULL;
    }
    slab->stack.slab = slab;
    slab->stack.low = slab->stack.top = slab->stack.high = (char *)slab;
    slab->stack.owner = owner;
    if (pool->slabs == NULL) {
        pool->slabs = slab->prev = slab;
    }
    else {
        slab->prev = pool->slabs->prev;
        slab->prev->next = pool->slabs->prev = slab;
    }
    pool->in_use++;
    return &slab->stack;
}

void
plus_stack_give(struct plus_stack_pool *pool, struct plus_stack *stack)
{
    struct plus_slab *slab = stack->slab;

    if (slab == pool->slabs) {
        pool->slabs = slab->next;
    }
    else {
        slab->prev->next = slab->next;
    }
    if (slab->next != NULL) {
        slab->next->prev = slab->prev;
    }
    else if (pool->slabs != NULL) {
        pool->slabs->prev = slab->prev;
    }
    pool->in_use--;
    Py_DECREF(slab->greenlet);
    free(slab);
}

int
plus_stacks_each(struct plus_stack_pool *pool, int (*each)(void *owner, void *arg), void *arg)
{
    for (struct plus_slab *slab = pool->slabs; slab != NULL; slab = slab->next) {
        int result = each(slab->stack.owner, arg);

        if (result != 0) {
            return result;
        }
    }
    return 0;
}

/* ---- switch.h and pystate.h ------------------------------------------------------------------- */

void *
plus_switch_prepare(void *top, void (*function)(void))
{
    entry = function;
    return top;
}

void
plus_pystate_fresh(struct plus_pystate *state, PyThreadState *tstate,
                   const struct plus_stack *stack, PyObject *context)
{
    plus_pystate_fresh_rest(state, context);
    Py_XSETREF(state->place, Py_NewRef(stack->slab->greenlet));
    state->begun = false;
}

void
plus_pystate_load(PyThreadState *tstate, struct plus_pystate *state)
{
    plus_pystate_load_rest(state, tstate);
    state->begun = true;
    own.here = state;
#if PY_VERSION_HEX < 0x030C0000
    bool traced = (state->tracefunc != NULL || state->profilefunc != NULL) && state->tracing == 0;

    tstate->cframe->use_tracing = traced ? 255 : 0; /* greenlet leaves that of who switched */
#endif
}

/* Where to switch to for going to `to` (borrowed). */
static PyObject *
way_to(struct plus_pystate *to)
{
    own.going = to;
    if (to->begun) {
        return to->place;
    }
    own.start = to->place;
    return own.spring;
}

/* Somebody has come to a parked tasklet by greenlet's own means: the tasklet that runs has switched or thrown to
 * it, or waits for a greenlet that has ended and whose parent this is, or for gevent, which throws a Timeout.
 * Whatever is brought is for the one that runs.  Takes the result, or (NULL) the exception. */
static PyObject *
pass_on(PyObject *result)
{
    PyObject *type, *value, *traceback, *args;
    PyObject *there = own.here->place;

    if (result != NULL) {
        args = PyTuple_Pack(1, result);
        Py_DECREF(result);
        result = GREENLET_SWITCH(there, args); /* with NULL it gets an empty tuple */
        Py_XDECREF(args);
        return result;
    }
    PyErr_Fetch(&type, &value, &traceback);
    result = GREENLET_THROW(there, type, value, traceback);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    return result;
}

void
plus_pystate_switch(PyThreadState *tstate, struct plus_pystate *from, void **from_sp,
                    struct plus_pystate *to, void *to_sp)
{
    PyObject *current = GREENLET_CURRENT();

    Py_XSETREF(from->place, current);
    from->begun = true;
    plus_pystate_save_rest(from, tstate);
    tstate->context = NULL; /* we have it */
    *from_sp = current;
#if PY_VERSION_HEX >= 0x030E0000
    PyObject *executor = Py_XNewRef(tstate->current_executor); /* greenlet borrows it */
#endif
    PyObject *result = GREENLET_SWITCH(way_to(to), NULL);

    while (own.going != from) {
        result = pass_on(result);
    }
#if PY_VERSION_HEX >= 0x030E0000
    Py_XDECREF(executor);
#endif
    own.going = NULL;
    plus_pystate_load(tstate, from);
    if (result == NULL) {
        PyErr_WriteUnraisable(NULL); /* of a tracer of greenlet's, which is no more */
    }
    Py_XDECREF(result);
}

void
plus_pystate_arrived(void)
{
    struct plus_pystate *here = own.going;

    if (here == NULL) {
        Py_FatalError("a tasklet was started by a greenlet switch of other code");
    }
    own.going = NULL;
    plus_pystate_load(PyThreadState_Get(), here);
}

void
plus_pystate_leave(PyThreadState *tstate, struct plus_pystate *to, void *to_sp)
{
    PyObject *current = GREENLET_CURRENT();
    PyObject *there = way_to(to);

    if (GREENLET_SET_PARENT(current, there) < 0) {
        /* It descends from us: somebody's own greenlet.  We end when we are forgotten. */
        PyErr_Clear();
        Py_DECREF(current);
        PyObject *result = GREENLET_SWITCH(there, NULL);

        PyErr_Clear();
        Py_XDECREF(result);
        return;
    }
    Py_DECREF(current);
}

static bool
is_in_pool(const struct plus_stack_pool *pool, const PyObject *greenlet)
{
    const struct plus_slab *slab = pool->slabs;

    while (slab != NULL && slab->greenlet != greenlet) {
        slab = slab->next;
    }
    return slab != NULL;
}

bool
plus_pystate_elsewhere(const struct plus_pystate *state, const struct plus_stack_pool *pool)
{
    if (plus_compat_is_finalizing()) {
        return true; /* greenlet does not say any more which one runs */
    }
    if (own.going != NULL) {
        return true; /* a tracer of greenlet's, or a finaliser, in the middle of a switch */
    }
    if (pool->slabs == NULL) {
        return false; /* there is only main, and it is where we are */
    }
    PyObject *current = GREENLET_CURRENT();
    bool elsewhere =
        current != state->place && (is_in_pool(pool, state->place) || is_in_pool(pool, current));

    Py_DECREF(current);
    return elsewhere;
}

struct _PyInterpreterFrame *
plus_pystate_frame(const struct plus_pystate *state, const struct plus_slice *slice)
{
    PyObject *frame =
        state->place != NULL ? PyObject_GetAttrString(state->place, "gr_frame") : NULL;
    struct _PyInterpreterFrame *top = NULL;

    if (frame == NULL) {
        PyErr_Clear();
    }
    else if (PyFrame_Check(frame)) {
        top = plus_frames_of_object(frame); /* which keeps it alive while it is parked */
    }
    Py_XDECREF(frame);
    return top;
}

int
plus_pystate_traverse(struct plus_pystate *state, visitproc visit, void *arg)
{
    /* Not `place`: what it holds is not seen by the collector either, so that a cycle is never complete. */
    Py_VISIT(state->context);
    Py_VISIT(state->traceobj);
    Py_VISIT(state->profileobj);
    return 0;
}

void
plus_pystate_clear(struct plus_pystate *state)
{
    Py_CLEAR(state->context);
    Py_CLEAR(state->traceobj);
    Py_CLEAR(state->profileobj);
    Py_CLEAR(state->place);
}

#endif
