/* `atomic`: sections of code in which the interpreter does not take the GIL away.
 *
 *   atomic()  ->  a section; `with` enters and leaves it
 *   atomic(f) ->  f, run inside a section (the Python half makes the wrapper)
 *   atomic.enter(), atomic.leave()
 *
 * The depth belongs to the thread (struct plus_thread); a section object only remembers which thread
 * entered it, so that leaving it elsewhere (a generator that was suspended inside and resumed by
 * another thread) ends the section where it began and says so.
 *
 * Everything here runs with the GIL held, which also guards the counters and the free list.
 * Durations come from the coarse clock: 3 ns instead of 21 for each of two readings, for sections
 * that shall cost little more than nothing; it ticks every 1 to 10 ms, and limits are that long.
 */
#include "binding.h" /* Python.h first: it sets the feature macros */

#include "../_base/clock.h"
#include "../_base/raise.h"
#include "control.h"
#include "sched.h"

#include <stddef.h>

#define DEFAULT_LIMIT_NS (UINT64_C(20) * PLUS_NS_PER_MS)
#define MAX_FREE 16

typedef struct section {
    PyObject_HEAD uint64_t owner; /* serial of the thread that is inside; 0: nobody */
    uint32_t count;               /* how often it entered through this object */
    struct section *next_free;
} section;

typedef struct {
    PyObject_HEAD vectorcallfunc vectorcall;
    PyObject *decorate;      /* callable: function -> wrapped function */
    PyObject *make_reporter; /* callable: user's callable -> callable(duration_ns) */
} entry;

static struct {
    uint64_t sections, contended, overlong, longest_ns;
} counts;

static bool prepared;
static uint64_t limit_ns = DEFAULT_LIMIT_NS;
static PyObject *reporter; /* callable(duration_ns) or NULL; owned */
static PyTypeObject *section_type;
static section *free_sections;
static unsigned free_count;

static uint64_t
coarse_now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
    return plus_timespec_ns(&ts);
}

/* ------------------------------------------------------------------------------------------------
 * Entering and leaving
 */

static int
prepare(void)
{
    char reason[PLUS_REASON_SIZE];

    if (prepared && plus_hooks_level() != PLUS_HOOKS_OFF) {
        return 0;
    }
    if (plus_control_track(reason) < 0) {
        plus_raise_unsupported(reason);
        return -1;
    }
    prepared = true;
    return 0;
}

static void
enter(struct plus_thread *self)
{
    if (plus_sched_atomic_enter(self)) {
        /* Somebody asked for the GIL before the section began: it goes to them now, and taking it
         * again withdraws the request. */
        Py_BEGIN_ALLOW_THREADS
        Py_END_ALLOW_THREADS
    }
    if (atomic_load_explicit(&self->atomic_depth, memory_order_relaxed) == 1u) {
        self->atomic_start_ns = coarse_now_ns();
    }
}

static void
report(struct plus_thread *self, uint64_t duration_ns)
{
    counts.overlong++;
    if (reporter == NULL || self->reporting) { /* a reporter's own sections are only counted */
        return;
    }
    PyObject *function = Py_NewRef(reporter);
    self->reporting = true;
    PyObject *result = PyObject_CallFunction(function, "K", (unsigned long long)duration_ns);
    self->reporting = false;
    if (result == NULL) {
        PyErr_WriteUnraisable(function);
    }
    Py_XDECREF(result);
    Py_DECREF(function);
}

static void
hand_over(struct plus_thread *self)
{
    uint32_t sequence = plus_sched_hand_over_begins(self);

    counts.contended++;
    Py_BEGIN_ALLOW_THREADS
    plus_sched_hand_over_nogil(sequence);
    Py_END_ALLOW_THREADS
}

static void
leave(struct plus_thread *self)
{
    bool wanted = plus_sched_atomic_leave(self);

    if (atomic_load_explicit(&self->atomic_depth, memory_order_relaxed) > 0) {
        return;
    }
    uint64_t duration = coarse_now_ns() - self->atomic_start_ns;
    counts.sections++;
    if (duration > counts.longest_ns) {
        counts.longest_ns = duration;
    }
    if (wanted) {
        hand_over(self);
    }
    if (duration > limit_ns) {
        report(self, duration);
    }
}

/* The calling thread's record; NULL with MemoryError. */
static struct plus_thread *
own_record(void)
{
    struct plus_thread *self = plus_thread_try_self();

    if (self == NULL) {
        PyErr_NoMemory();
    }
    return self;
}

bool
plus_atomic_hold(void)
{
    struct plus_thread *self = prepare() < 0 ? NULL : own_record();

    if (self == NULL) {
        PyErr_Clear();
        return false;
    }
    enter(self);
    return true;
}

void
plus_atomic_let_go(void)
{
    struct plus_thread *self = plus_thread_self();

    if (atomic_load_explicit(&self->atomic_depth, memory_order_relaxed) > 0) {
        leave(self); /* else atomic.leave() has done it */
    }
}

/* ------------------------------------------------------------------------------------------------
 * The section object
 */

/* With the GIL held, under the registry's lock.  Whoever waits for the section waits for the GIL, which
 * is ours: there is nothing to hand over. */
static void
end_elsewhere(struct plus_thread *thread, void *argument)
{
    const uint64_t *serial = argument;

    if (thread->serial == *serial && atomic_load(&thread->atomic_depth) > 0) {
        plus_sched_atomic_leave(thread);
    }
}

static PyObject *
leave_foreign(section *s)
{
    plus_threads_visit(end_elsewhere, &s->owner);
    if (--s->count == 0) {
        s->owner = 0;
    }
    return PyErr_Format(PyExc_RuntimeError,
                        "atomic section left in a different thread than it was entered in; "
                        "it was not atomic here, and has been ended there");
}

static PyObject *
section_enter(PyObject *op, PyObject *ignored)
{
    section *s = (section *)op;
    struct plus_thread *self = own_record();

    if (self == NULL) {
        return NULL;
    }
    if (s->count > 0 && s->owner != self->serial) {
        return PyErr_Format(PyExc_RuntimeError,
                            "atomic section is already entered in another thread");
    }
    s->owner = self->serial; /* before enter() lets another thread run */
    s->count++;
    enter(self);
    return Py_NewRef(op);
}

static PyObject *
section_exit(PyObject *op, PyObject *const *args, Py_ssize_t nargs)
{
    section *s = (section *)op;
    struct plus_thread *self = own_record();

    if (self == NULL) {
        return NULL;
    }
    if (s->count == 0) {
        return PyErr_Format(PyExc_RuntimeError, "atomic section has not been entered");
    }
    if (s->owner != self->serial) {
        return leave_foreign(s);
    }
    s->count--;
    if (atomic_load_explicit(&self->atomic_depth, memory_order_relaxed) == 0) {
        s->count = 0;
        return PyErr_Format(PyExc_RuntimeError,
                            "atomic section was ended by atomic.leave() inside it");
    }
    leave(self);
    Py_RETURN_FALSE;
}

static PyObject *
new_section(void)
{
    if (prepare() < 0) { /* may let other threads run, which take from the free list too */
        return NULL;
    }
    section *s = free_sections;
    if (s != NULL) {
        free_sections = s->next_free;
        free_count--;
        PyObject_Init((PyObject *)s, section_type);
    }
    else {
        s = PyObject_New(section, section_type);
        if (s == NULL) {
            return NULL;
        }
    }
    s->owner = 0;
    s->count = 0;
    s->next_free = NULL;
    return (PyObject *)s;
}

static void
section_dealloc(PyObject *op)
{
    section *s = (section *)op;
    PyTypeObject *type = Py_TYPE(op);

    /* Dropped while entered: an interrupt came between __enter__ and the block that would have run
     * __exit__. */
    for (; s->count > 0; s->count--) {
        plus_threads_visit(end_elsewhere, &s->owner);
    }
    if (free_count < MAX_FREE) {
        s->next_free = free_sections;
        free_sections = s;
        free_count++;
    }
    else {
        PyObject_Free(op);
    }
    Py_DECREF(type);
}

static PyMethodDef section_methods[] = {
    {"__enter__", section_enter, METH_NOARGS, NULL},
    {"__exit__", (PyCFunction)(void (*)(void))section_exit, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot section_slots[] = {
    {Py_tp_dealloc, section_dealloc},
    {Py_tp_methods, section_methods},
    {Py_tp_doc, "One atomic section; made by calling atomic()."},
    {0, NULL},
};

static PyType_Spec section_spec = {
    .name = "cpythonplus.AtomicSection",
    .basicsize = sizeof(section),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = section_slots,
};

/* ------------------------------------------------------------------------------------------------
 * The entry object: the public name `atomic`
 */

static PyObject *
entry_call(PyObject *op, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
    entry *e = (entry *)op;

    if (kwnames != NULL && PyTuple_GET_SIZE(kwnames) > 0) {
        return PyErr_Format(PyExc_TypeError, "atomic() takes no keyword arguments");
    }
    if (nargs == 0) {
        return new_section();
    }
    if (nargs > 1) {
        return PyErr_Format(PyExc_TypeError, "atomic() takes at most 1 argument (%zd given)",
                            nargs);
    }
    if (e->decorate == NULL) {
        return PyErr_Format(PyExc_RuntimeError, "atomic is not set up");
    }
    return PyObject_CallOneArg(e->decorate, args[0]);
}

static PyObject *
entry_enter(PyObject *op, PyObject *ignored)
{
    struct plus_thread *self = prepare() < 0 ? NULL : own_record();

    if (self == NULL) {
        return NULL;
    }
    enter(self);
    Py_RETURN_NONE;
}

static PyObject *
entry_leave(PyObject *op, PyObject *ignored)
{
    struct plus_thread *self = plus_thread_if_known();

    if (self == NULL || atomic_load(&self->atomic_depth) == 0) {
        return PyErr_Format(PyExc_RuntimeError,
                            "atomic.leave() without atomic.enter() in this thread");
    }
    leave(self);
    Py_RETURN_NONE;
}

static PyObject *
entry_inside(PyObject *op, PyObject *ignored)
{
    struct plus_thread *self = plus_thread_if_known();

    return PyBool_FromLong(self != NULL && atomic_load(&self->atomic_depth) > 0);
}

static PyObject *
entry_setup(PyObject *op, PyObject *args)
{
    entry *e = (entry *)op;
    PyObject *decorate, *make_reporter;

    if (!PyArg_ParseTuple(args, "OO:_setup", &decorate, &make_reporter)) {
        return NULL;
    }
    Py_XSETREF(e->decorate, Py_NewRef(decorate));
    Py_XSETREF(e->make_reporter, Py_NewRef(make_reporter));
    Py_RETURN_NONE;
}

/* 0, or -1 with an exception. */
static int
set_reporter(entry *e, PyObject *callable)
{
    PyObject *made = NULL;

    if (callable != Py_None) {
        if (!PyCallable_Check(callable)) {
            PyErr_Format(PyExc_TypeError, "report must be callable or None, not %.200s",
                         Py_TYPE(callable)->tp_name);
            return -1;
        }
        made = PyObject_CallOneArg(e->make_reporter, callable);
        if (made == NULL) {
            return -1;
        }
    }
    Py_XSETREF(reporter, made);
    return 0;
}

static PyObject *
entry_configure(PyObject *op, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"limit_ms", "report", NULL};
    double limit_ms = (double)limit_ns / (double)PLUS_NS_PER_MS;
    PyObject *callable = NULL;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$dO:configure", names, &limit_ms, &callable)) {
        return NULL;
    }
    if (!(limit_ms > 0.0 && limit_ms <= 1e9)) {
        return PyErr_Format(PyExc_ValueError, "limit_ms must be above 0 and at most 1e9");
    }
    if (callable != NULL && set_reporter((entry *)op, callable) < 0) {
        return NULL;
    }
    limit_ns = (uint64_t)(limit_ms * (double)PLUS_NS_PER_MS);
    Py_RETURN_NONE;
}

static int
entry_traverse(PyObject *op, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(op));
    Py_VISIT(((entry *)op)->decorate);
    Py_VISIT(((entry *)op)->make_reporter);
    return 0;
}

static int
entry_clear(PyObject *op)
{
    Py_CLEAR(((entry *)op)->decorate);
    Py_CLEAR(((entry *)op)->make_reporter);
    return 0;
}

static void
entry_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);

    PyObject_GC_UnTrack(op);
    entry_clear(op);
    type->tp_free(op);
    Py_DECREF(type);
}

PyDoc_STRVAR(enter_doc,
             "enter($self, /)\n--\n\n"
             "Begin an atomic section of this thread.  Sections nest.\n\n"
             "Raises UnsupportedPlatform, with the reason, where the GIL cannot be held.");

PyDoc_STRVAR(leave_doc, "leave($self, /)\n--\n\n"
                        "End the innermost atomic section of this thread that enter() began.\n\n"
                        "Raises RuntimeError when this thread is not inside one.");

PyDoc_STRVAR(inside_doc, "inside($self, /)\n--\n\n"
                         "Return whether this thread is inside an atomic section.");

PyDoc_STRVAR(configure_doc,
             "configure($self, /, *, limit_ms=20.0, report=None)\n--\n\n"
             "Set when a section counts as overlong, and what is called then.\n\n"
             "limit_ms: a section that lasted longer (milliseconds, to the tick of the coarse\n"
             "clock, 1 to 10 ms) is counted in the statistics.  report: called with an\n"
             "OverlongSection when one has ended, by the thread that left it; None: nothing.\n"
             "What is not given stays as it is.  Raises ValueError for a limit that is not\n"
             "positive, TypeError for a report that cannot be called.");

PyDoc_STRVAR(entry_doc,
             "atomic()\n"
             "atomic(function)\n\n"
             "No involuntary switch to another thread.\n\n"
             "`with atomic():` runs its block, and a function decorated with `@atomic` its\n"
             "body, without the interpreter taking the GIL away from this thread.  A blocking\n"
             "call inside still lets other threads run: that is voluntary, as in Stackless\n"
             "Python.  Sections nest, and belong to the thread.\n\n"
             "Raises UnsupportedPlatform, with the reason, where the GIL cannot be held.");

static PyMethodDef entry_methods[] = {
    {"enter", entry_enter, METH_NOARGS, enter_doc},
    {"leave", entry_leave, METH_NOARGS, leave_doc},
    {"inside", entry_inside, METH_NOARGS, inside_doc},
    {"configure", (PyCFunction)(void (*)(void))entry_configure, METH_VARARGS | METH_KEYWORDS,
     configure_doc},
    {"_setup", entry_setup, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef entry_members[] = {
    {"__vectorcalloffset__", Py_T_PYSSIZET, offsetof(entry, vectorcall), Py_READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot entry_slots[] = {
    {Py_tp_dealloc, entry_dealloc}, {Py_tp_traverse, entry_traverse},
    {Py_tp_clear, entry_clear},     {Py_tp_call, PyVectorcall_Call},
    {Py_tp_methods, entry_methods}, {Py_tp_members, entry_members},
    {Py_tp_doc, (void *)entry_doc}, {0, NULL},
};

static PyType_Spec entry_spec = {
    .name = "cpythonplus.Atomic",
    .basicsize = sizeof(entry),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
             Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = entry_slots,
};

int
plus_atomic_init(PyObject *module)
{
    PyObject *type = PyType_FromSpec(&entry_spec);
    entry *made;
    int rc;

    if (type == NULL) {
        return -1;
    }
    if (section_type == NULL) {
        section_type = (PyTypeObject *)PyType_FromSpec(&section_spec);
    }
    made = section_type != NULL ? PyObject_GC_New(entry, (PyTypeObject *)type) : NULL;
    Py_DECREF(type);
    if (made == NULL) {
        return -1;
    }
    made->vectorcall = entry_call;
    made->decorate = NULL;
    made->make_reporter = NULL;
    PyObject_GC_Track((PyObject *)made);
    rc = PyModule_AddObjectRef(module, "atomic", (PyObject *)made);
    Py_DECREF(made);
    return rc;
}

PyObject *
plus_atomic_counts(void)
{
    return Py_BuildValue("(KKKKK)", counts.sections, counts.contended, counts.overlong,
                         counts.longest_ns, plus_sched_abandoned_sections());
}

void
plus_atomic_reset_counts(void)
{
    counts.sections = counts.contended = counts.overlong = 0;
    counts.longest_ns = 0;
}
