/* `atomic`: sections of code in which the interpreter does not take the GIL away.
 *
 *   atomic()     returns a section; `with` enters and leaves it
 *   atomic(f)    returns f wrapped to run inside a section (the Python half makes the wrapper)
 *   atomic.enter(), atomic.leave()
 *
 * The state is a depth and a word `wanted` in the thread's record (struct plus_thread), not in the section: a thread is
 * inside as long as its depth is above 0, whatever objects it entered with.  Depth 0 -> 1 begins a section, 1 -> 0 ends
 * it; other changes only count.  The thread itself writes its depth, with the GIL held.  Waiters read only the holder's
 * depth, under the GIL's mutex: a thread that blocks inside a section has given the GIL up and holds nobody up.
 *
 *   enter     stores the depth, then reads whether the GIL was asked for.  If it was, the interpreter has the request
 *             already and would act on it inside; so the thread gives the GIL up once and takes it again, which
 *             withdraws the request.
 *   waiter    stores `asked`, then reads the depth (sched.c:ask_holder).  If the holder is inside, the waiter stores
 *             `wanted` and withdraws its own request, and the interpreter is told of a spurious wake-up.
 *   leave     stores the depth, then reads `wanted`.  If it is set, the thread gives the GIL up until another thread
 *             has taken it, or for 5 ms: a sleeper takes longer to wake than this thread to enter again.
 *
 * All of these are sequentially consistent, so in each pair at least one side sees the other.
 *
 * A section object remembers which thread entered it, and how often.  If another thread leaves it (a generator that was
 * suspended inside, and resumed there), or if it is dropped while entered (an interrupt between __enter__ and the
 * block), it ends its part in the record of the thread that entered, under the registry's lock.  A thread that ends
 * inside is counted as abandoned, and another thread may enter its section.
 *
 * Everything here runs with the GIL held, which also guards the counters and the free lists.  The thread that left an
 * overlong section reports it after handing the GIL over, outside of the section.
 *
 * Each interpreter has its own entry object, which holds everything that interpreters must not share: types, free
 * sections, reporter.  An interpreter may have an allocator of its own, and end before the others.  The counts are per
 * process.
 *
 * Durations come from the coarse clock, since a section shall cost next to nothing: each of the two readings takes 3 ns
 * instead of 21.  It ticks every 1 to 10 ms, and limits are as long as that.
 *
 * Rejected: a lock, which excludes only threads that take it; a long switch interval while inside, which is
 * process-wide, visible to programs, and without effect on threads that wait already; one free list for all
 * interpreters, because of their allocators.
 */
#include "binding.h" /* Python.h first: it sets the feature macros */

#include "../_base/methods.h"
#include "../_base/process/clock.h"
#include "../_base/raise.h"
#include "control.h"
#include "scheduler/sched.h"

#define DEFAULT_LIMIT_NS (UINT64_C(20) * PLUS_NS_PER_MS)
#define MAX_FREE 16

struct entry;

typedef struct section {
    PyObject_HEAD struct entry *home; /* strong; unset while the section is on the free list */
    uint64_t owner;                   /* serial of the thread that is inside; 0: none */
    uint32_t count;                   /* how often `owner` entered through this object */
    struct section *next_free;
} section;

typedef struct entry {
    PyObject_HEAD vectorcallfunc vectorcall;
    PyObject *decorate;      /* callable: function -> wrapped function */
    PyObject *make_reporter; /* callable: user's callable -> callable(duration_ns) */
    PyObject *reporter;      /* callable(duration_ns) or NULL */
    uint64_t limit_ns;
    PyTypeObject *section_type;
    section *free_sections;
    unsigned free_count;
} entry;

static struct {
    uint64_t sections, contended, overlong, longest_ns;
} counts;

static bool prepared;
static entry *mains; /* the main interpreter's, kept for good; sections from C report to it */

/* ------------------------------------------------------------------------------------------------
 * Entering and leaving
 */

static int
prepare(void)
{
    char reason[PLUS_REASON_SIZE];

    /* While the interpreter finalises, no other thread gets the GIL. */
    if ((prepared && plus_hooks_level() != PLUS_HOOKS_OFF) || plus_compat_is_finalizing()) {
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
        /* The GIL was asked for before the section began: it goes to the waiter now, and taking it again
         * withdraws the request. */
        Py_BEGIN_ALLOW_THREADS
        Py_END_ALLOW_THREADS
    }
    if (atomic_load_explicit(&self->atomic_depth, memory_order_relaxed) == 1u) {
        self->atomic_start_ns = plus_now_coarse_ns();
    }
}

static void
report(const entry *e, struct plus_thread *self, uint64_t duration_ns)
{
    counts.overlong++;
    if (e->reporter == NULL || self->reporting) { /* a reporter's own sections are only counted */
        return;
    }
    PyObject *function = Py_NewRef(e->reporter);
    self->reporting = true;
    PyObject *result = PyObject_CallFunction(function, "K", (unsigned long long)duration_ns);
    self->reporting = false;
    if (result == NULL) {
        PyErr_WriteUnraisable(function);
    }
    Py_XDECREF(result);
    Py_DECREF(function);
}

/* The caller has a reference to `e`, so `e` stays until this returns. */
static void
leave(const entry *e, struct plus_thread *self)
{
    bool wanted = plus_sched_atomic_leave(self);

    if (atomic_load_explicit(&self->atomic_depth, memory_order_relaxed) > 0) {
        return;
    }
    uint64_t duration = plus_now_coarse_ns() - self->atomic_start_ns;
    counts.sections++;
    if (duration > counts.longest_ns) {
        counts.longest_ns = duration;
    }
    if (wanted) {
        uint32_t sequence = plus_sched_hand_over_begins(self);

        counts.contended++;
        Py_BEGIN_ALLOW_THREADS
        plus_sched_hand_over_nogil(sequence);
        Py_END_ALLOW_THREADS
    }
    if (duration > e->limit_ns) {
        report(e, self, duration);
    }
}

/* Returns the calling thread's record, or NULL with MemoryError. */
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
        leave(mains, self); /* at depth 0 atomic.leave() has ended the section already */
    }
}

/* ------------------------------------------------------------------------------------------------
 * The section object
 */

/* Called with the GIL held, under the registry's lock.  A thread that waits for the section waits for the GIL, which
 * we hold: there is nothing to hand over. */
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

static void
note_presence(struct plus_thread *thread, void *is_there)
{
    (void)thread;
    *(bool *)is_there = true;
}

/* Returns false if the thread that entered the section has ended inside, or was left behind by a fork. */
static bool
is_entered_elsewhere(const section *s, const struct plus_thread *self)
{
    bool is_there = false;

    if (s->count > 0 && s->owner != self->serial) {
        plus_threads_visit_one(s->owner, note_presence, &is_there);
    }
    return is_there;
}

static PyObject *
section_enter(PyObject *op, PyObject *ignored)
{
    section *s = (section *)op;
    struct plus_thread *self = own_record();

    if (self == NULL) {
        return NULL;
    }
    if (is_entered_elsewhere(s, self)) {
        return PyErr_Format(PyExc_RuntimeError,
                            "atomic section is already entered in another thread");
    }
    /* Set before enter(), which may let another thread run. */
    s->count = s->owner == self->serial ? s->count + 1u : 1u;
    s->owner = self->serial;
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
    leave(s->home, self);
    Py_RETURN_FALSE;
}

static PyObject *
new_section(entry *e)
{
    if (prepare() < 0) { /* before the free list is used: it may let other threads run */
        return NULL;
    }
    section *s = e->free_sections;
    if (s != NULL) {
        e->free_sections = s->next_free;
        e->free_count--;
        PyObject_Init((PyObject *)s, e->section_type);
    }
    else {
        s = PyObject_New(section, e->section_type);
        if (s == NULL) {
            return NULL;
        }
    }
    s->home = (entry *)Py_NewRef((PyObject *)e);
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
    entry *home = s->home;

    /* If the section is dropped while entered, an interrupt came between __enter__ and the block that would have
     * run __exit__. */
    for (; s->count > 0; s->count--) {
        plus_threads_visit(end_elsewhere, &s->owner);
    }
    if (home->free_count < MAX_FREE) {
        s->next_free = home->free_sections;
        home->free_sections = s;
        home->free_count++;
    }
    else {
        PyObject_Free(op);
    }
    Py_DECREF(type);
    Py_DECREF((PyObject *)home);
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
        return new_section(e);
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
    leave((entry *)op, self);
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

/* Returns 0 and sets *made to the callable that reports to `callable`, or to NULL for None; -1 with an exception. */
static int
make_reporter(const entry *e, PyObject *callable, PyObject **made)
{
    *made = NULL;
    if (callable == Py_None) {
        return 0;
    }
    if (!PyCallable_Check(callable)) {
        PyErr_Format(PyExc_TypeError, "report must be callable or None, not %.200s",
                     Py_TYPE(callable)->tp_name);
        return -1;
    }
    if (e->make_reporter == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "atomic is not set up");
        return -1;
    }
    *made = PyObject_CallOneArg(e->make_reporter, callable);
    return *made != NULL ? 0 : -1;
}

static PyObject *
entry_configure(PyObject *op, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"limit_ms", "report", NULL};
    entry *e = (entry *)op;
    PyObject *limit = NULL, *callable = NULL, *made = NULL;
    double limit_ms = 0.0;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OO:configure", names, &limit, &callable)) {
        return NULL;
    }
    if (limit != NULL) {
        limit_ms = PyFloat_AsDouble(limit);
        if (limit_ms == -1.0 && PyErr_Occurred()) {
            return NULL;
        }
        if (!(limit_ms > 0.0 && limit_ms <= 1e9)) {
            return PyErr_Format(PyExc_ValueError, "limit_ms must be above 0 and at most 1e9");
        }
    }
    if (callable != NULL && make_reporter(e, callable, &made) < 0) {
        return NULL;
    }
    if (limit != NULL) {
        e->limit_ns = (uint64_t)(limit_ms * (double)PLUS_NS_PER_MS);
    }
    if (callable != NULL) {
        Py_XSETREF(e->reporter, made); /* last: the old one's destructor may call configure() */
    }
    Py_RETURN_NONE;
}

static int
entry_traverse(PyObject *op, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(op));
    Py_VISIT(((entry *)op)->decorate);
    Py_VISIT(((entry *)op)->make_reporter);
    Py_VISIT(((entry *)op)->reporter);
    Py_VISIT(((entry *)op)->section_type);
    return 0;
}

static int
entry_clear(PyObject *op)
{
    Py_CLEAR(((entry *)op)->decorate);
    Py_CLEAR(((entry *)op)->make_reporter);
    Py_CLEAR(((entry *)op)->reporter);
    return 0;
}

static void
entry_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    entry *e = (entry *)op;

    PyObject_GC_UnTrack(op);
    entry_clear(op);
    for (section *s; (s = e->free_sections) != NULL;) {
        e->free_sections = s->next_free;
        PyObject_Free(s);
    }
    Py_XDECREF(
        (PyObject *)
            e->section_type); /* not in entry_clear(): `atomic` may be called during a clear */
    type->tp_free(op);
    Py_DECREF(type);
}

PyDoc_STRVAR(configure_doc,
             "configure($self, /, *, limit_ms=20.0, report=None)\n--\n\n"
             "Set when a section counts as overlong, and what is called then.\n\n"
             "limit_ms: a section that lasted longer (milliseconds, to the tick of the coarse\n"
             "clock, 1 to 10 ms) is counted in the statistics.  report: called with an\n"
             "OverlongSection when one has ended, by the thread that left it; None: nothing.\n"
             "A limit that is not given stays as it is.  Raises ValueError for one that is not\n"
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
    PLUS_METHOD("enter", entry_enter, METH_NOARGS, "$self, /",
                "Begin an atomic section of this thread.  Sections nest.\n\n"
                "Raises UnsupportedPlatform, with the reason, where the GIL cannot be held."),
    PLUS_METHOD("leave", entry_leave, METH_NOARGS, "$self, /",
                "End the innermost atomic section of this thread that enter() began.\n\n"
                "Raises RuntimeError when this thread is not inside one."),
    PLUS_METHOD("inside", entry_inside, METH_NOARGS, "$self, /",
                "Return whether this thread is inside an atomic section."),
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
    PyTypeObject *type = (PyTypeObject *)PyType_FromSpec(&entry_spec);
    entry *made = type != NULL ? (entry *)type->tp_alloc(type, 0) : NULL;

    Py_XDECREF((PyObject *)type);
    if (made == NULL) {
        return -1;
    }
    made->vectorcall = entry_call;
    made->limit_ns = DEFAULT_LIMIT_NS;
    made->section_type = (PyTypeObject *)PyType_FromSpec(&section_spec);
    int rc =
        made->section_type != NULL ? PyModule_AddObjectRef(module, "atomic", (PyObject *)made) : -1;

    if (rc == 0 && PyInterpreterState_Get() == PyInterpreterState_Main()) {
        Py_XSETREF(mains, (entry *)Py_NewRef((PyObject *)made));
    }
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
