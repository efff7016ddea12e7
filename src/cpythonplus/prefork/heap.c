/* How the walk finds everything.
 *
 * The collector's lists hold the containers; plus_referents_visit leads to what each refers to.  A referent
 * that is in the lists itself is left for its own turn; any other (strings, numbers, tuples of such,
 * code) is handled at once, with a stack instead of recursion.
 *
 * Tuples and frozensets are the exception: it does not do that they are in the lists.
 *
 *     tuple(f(x) for x in ...)         C:  result = PyTuple_New(n)            in the lists from here on
 *                                          item = next(it)                    Python code; perhaps it forks
 *                                          _PyTuple_Resize(&result, ...)      SystemError unless its count is 1
 *
 * Who fills a tuple (PySequence_Tuple, so also tuple(), f(*x) and namedtuple._make; PyTuple_SetItem in
 * extensions) or a frozenset (PySet_Add; marshal) asks for the only reference, and an immortal object does not
 * have it.  Until it is filled only a C variable holds it.  So one is handled when it is met as a referent of
 * something else or as a variable of a running function, which shows that somebody handed it out, and never
 * because it has its turn; and what a tuple that was not handed out refers to hands nothing out either.  What
 * stays mortal for it, because only C code and the interpreter's stack hold it, are a few dozen.
 *
 * Rejected: asking for empty places (a tuple with as many places as were guessed has none while the next item is
 * fetched, and PyTuple_SetItem may replace one), and counting references to find the hidden one (what is mortal
 * has hidden references all over: the interpreter's stack, C variables).
 *
 * No other object of the lists has to be the only reference for what is being built of it: lists, dicts and
 * sets are filled without a question.  The tuples that iterators use again (zip, enumerate, dict.items,
 * itertools) ask first and make a new one.  Strings and bytes that are being built (_PyBytes_Resize,
 * PyUnicode_Append) are not in the lists, and whoever asks (s += x, io.BytesIO) copies if he is not alone.
 *
 * No set of visited objects is needed: an object is handled when it turns immortal, which happens once.
 * A second call has to pass over everything again, for new objects may hang on old ones.
 */
#include "heap.h"

#include <frameobject.h>
#include <stddef.h>

#include "../_interp/immortal.h"
#include "../_interp/live_frames.h"
#include "../_interp/referents.h"

#ifdef PLUS_HAS_IMMORTAL

/* ------------------------------------------------------------------------------------------------
 * What stays mortal
 */

enum verdict {
    IMMORTAL,
    WATCHABLE, /* immortal unless a weak reference with a callback points to it */
    MORTAL,
};

#define VERDICTS 1024u /* a power of two */
#define NO_TALLY SIZE_MAX

/* How many objects of a type were kept mortal. */
struct tally {
    PyTypeObject *type;
    Py_ssize_t kept, watched;
};

struct walk {
    PyObject *types, *mortal, *spared; /* the caller's lists */
    Py_ssize_t limit;
    struct plus_heap_report *report;
    struct {
        PyTypeObject *type;
        enum verdict verdict;
        size_t tally;
    } verdicts[VERDICTS]; /* a cache: types share places */
    struct tally *tallies;
    size_t tally_count;
    PyObject *leaves; /* set of addresses: mortal objects that may be met again */
    PyObject **stack;
    size_t depth, capacity;
    bool unheld; /* what is being visited may be a tuple that is still being filled */
    bool failed; /* out of memory */
};

static inline bool
is_spent(const struct walk *walk)
{
    return walk->report->bytes >= walk->limit;
}

/* What is filled by C code that has to hold the only reference meanwhile. */
static inline bool
is_filled_alone(PyObject *op)
{
    return PyTuple_Check(op) || PyFrozenSet_Check(op);
}

/* By address: a metaclass may define how its types are hashed, in Python. */
static bool
is_listed(PyObject *types, PyTypeObject *type)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(types); i++) {
        if (PyList_GET_ITEM(types, i) == (PyObject *)type) {
            return true;
        }
    }
    return false;
}

static enum verdict
judge(const struct walk *walk, PyTypeObject *type)
{
    if (type->tp_finalize != NULL || type->tp_del != NULL || type == &PyFrame_Type ||
        type == &PyTraceBack_Type || PyType_FastSubclass(type, Py_TPFLAGS_BASE_EXC_SUBCLASS) ||
        is_listed(walk->mortal, type)) {
        return MORTAL;
    }
    /* Classes are counted with each instance, and ABCs watch them. */
    bool watchable = type->tp_weaklistoffset != 0 && type != &PyFunction_Type &&
                     type != &PyModule_Type && !PyType_FastSubclass(type, Py_TPFLAGS_TYPE_SUBCLASS);
    return watchable ? WATCHABLE : IMMORTAL;
}

static size_t
place_of(struct walk *walk, PyTypeObject *type)
{
    size_t place = ((uintptr_t)type >> 4) % VERDICTS;

    if (walk->verdicts[place].type != type) {
        walk->verdicts[place].type = type;
        walk->verdicts[place].verdict = judge(walk, type);
        walk->verdicts[place].tally = NO_TALLY;
    }
    return place;
}

/* The tally of a type, a new one if need be; NULL without memory. */
static struct tally *
tally_of(struct walk *walk, PyTypeObject *type)
{
    size_t *known = &walk->verdicts[place_of(walk, type)].tally;

    for (size_t i = 0; *known == NO_TALLY && i < walk->tally_count; i++) {
        if (walk->tallies[i].type == type) {
            *known = i;
        }
    }
    if (*known == NO_TALLY) {
        struct tally *more =
            PyMem_RawRealloc(walk->tallies, (walk->tally_count + 1) * sizeof(*more));
        if (more == NULL) {
            walk->failed = true;
            return NULL;
        }
        more[walk->tally_count] = (struct tally){.type = type};
        walk->tallies = more;
        *known = walk->tally_count++;
    }
    return &walk->tallies[*known];
}

static bool
is_watched(PyObject *op)
{
    PyWeakReference *reference = *(PyWeakReference **)PyObject_GET_WEAKREFS_LISTPTR(op);

    for (; reference != NULL; reference = reference->wr_next) {
        if (reference->wr_callback != NULL) {
            return true;
        }
    }
    return false;
}

/* Whether a mortal object is met for the first time.  One that only has its turn is met once. */
static bool
is_new(struct walk *walk, PyObject *op)
{
    if (plus_gc_is_tracked(op) && !is_filled_alone(op)) {
        return true;
    }
    PyObject *address = PyLong_FromVoidPtr(op);
    int known = -1;

    if (address != NULL) {
        known = PySet_Contains(walk->leaves, address);
        if (known == 0 && PySet_Add(walk->leaves, address) < 0) {
            known = -1;
        }
        Py_DECREF(address);
    }
    if (known < 0) {
        PyErr_Clear();
        walk->failed = true;
    }
    return known == 0;
}

static void
keep(struct walk *walk, PyObject *op, enum verdict verdict)
{
    struct tally *tally = is_new(walk, op) ? tally_of(walk, Py_TYPE(op)) : NULL;

    if (tally == NULL) {
        return;
    }
    tally->kept += verdict != WATCHABLE;
    tally->watched += verdict == WATCHABLE;
}

/* ------------------------------------------------------------------------------------------------
 * The walk
 */

static Py_ssize_t
own_size(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    Py_ssize_t size = type->tp_basicsize;

    if (PyUnicode_Check(op)) {
        Py_ssize_t length = PyUnicode_GET_LENGTH(op) + 1;

        return PyUnicode_IS_COMPACT_ASCII(op)
                   ? (Py_ssize_t)sizeof(PyASCIIObject) + length
                   : (Py_ssize_t)sizeof(PyCompactUnicodeObject) + length * PyUnicode_KIND(op);
    }
    if (PyList_Check(op)) {
        size += ((PyListObject *)op)->allocated * (Py_ssize_t)sizeof(PyObject *);
    }
    else if (PyLong_Check(op)) {
        return size;
    }
    else if (type->tp_itemsize > 0 && Py_SIZE(op) > 0) {
        size += Py_SIZE(op) * type->tp_itemsize;
    }
    if (PyDict_Check(op)) {
        /* Keys, values and the index, two thirds full at most. */
        size += PyDict_GET_SIZE(op) * 3 * (Py_ssize_t)sizeof(PyObject *) * 3 / 2;
    }
    return PyType_IS_GC(type) ? size + 2 * (Py_ssize_t)sizeof(void *) : size;
}

/* Turns one object immortal unless it has to stay mortal.  Whether it did so. */
static bool
treat(struct walk *walk, PyObject *op)
{
    if (plus_immortal_is(op) || is_spent(walk)) {
        return false;
    }
    enum verdict verdict = walk->verdicts[place_of(walk, Py_TYPE(op))].verdict;
    if (verdict == MORTAL || (verdict == WATCHABLE && is_watched(op)) ||
        !plus_immortal_may_be(op)) {
        keep(walk, op, verdict);
        return false;
    }
    walk->report->objects++;
    walk->report->bytes += own_size(op);
    plus_immortal_make(op);
    return true;
}

static void
push(struct walk *walk, PyObject *op)
{
    if (walk->depth == walk->capacity) {
        size_t capacity = walk->capacity > 0 ? 2 * walk->capacity : 1024;
        PyObject **stack = PyMem_RawRealloc(walk->stack, capacity * sizeof(*stack));

        if (stack == NULL) {
            walk->failed = true;
            return;
        }
        walk->stack = stack;
        walk->capacity = capacity;
    }
    walk->stack[walk->depth++] = op;
}

/* What something refers to; a visitproc. */
static int
meet(PyObject *op, void *argument)
{
    struct walk *walk = argument;

    /* The order saves time: most referents have been here. */
    if (op == NULL || plus_immortal_is(op)) {
        return 0;
    }
    if (is_filled_alone(op)) {
        if (walk->unheld) {
            return 0;
        }
    }
    else if (plus_gc_is_tracked(op)) {
        return 0; /* has its own turn */
    }
    if (treat(walk, op) && plus_referents_possible(op)) {
        push(walk, op);
    }
    return 0;
}

static void
empty_stack(struct walk *walk)
{
    while (walk->depth > 0) {
        plus_referents_visit(walk->stack[--walk->depth], meet, walk);
    }
}

/* Whether nothing has led to a tuple or frozenset yet that would be immortal then. */
static bool
is_unheld(struct walk *walk, PyObject *op)
{
    if (!is_filled_alone(op) || plus_immortal_is(op)) {
        return false;
    }
    enum verdict verdict = walk->verdicts[place_of(walk, Py_TYPE(op))].verdict;
    return verdict == IMMORTAL || (verdict == WATCHABLE && !is_watched(op));
}

/* The collector's lists; a gcvisitobjects_t. */
static int
take_turn(PyObject *op, void *argument)
{
    struct walk *walk = argument;

    /* What belongs to the walk is not part of the program. */
    if (op == walk->types || op == walk->mortal || op == walk->spared || op == walk->leaves) {
        return 1;
    }
    walk->unheld = is_unheld(walk, op);
    if (!walk->unheld) {
        treat(walk, op);
    }
    plus_referents_visit(op, meet, walk);
    walk->unheld = false; /* what is on the stack now was handed out: code and the like */
    empty_stack(walk);
    return !walk->failed && !is_spent(walk);
}

/* Once more when all have been met; a gcvisitobjects_t. */
static int
count_unheld(PyObject *op, void *argument)
{
    struct walk *walk = argument;

    walk->report->unheld += is_unheld(walk, op);
    return 1;
}

/* A variable of a running function. */
static int
meet_variable(PyCodeObject *code, int index, PyObject *value, void *argument)
{
    if (index >= 0 && is_filled_alone(value)) {
        meet(value, argument);
        empty_stack(argument);
    }
    return 0;
}

static PyObject *
list_tallies(const struct walk *walk)
{
    PyObject *list = PyList_New(0);

    for (size_t i = 0; list != NULL && i < walk->tally_count; i++) {
        const struct tally *tally = &walk->tallies[i];
        PyObject *entry = Py_BuildValue("(Onn)", tally->type, tally->kept, tally->watched);

        if (entry == NULL || PyList_Append(list, entry) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(entry);
    }
    return list;
}

static int
walk_everything(struct walk *walk)
{
    PyUnstable_GC_VisitObjects(take_turn, walk);
    if (!walk->failed && !is_spent(walk)) {
        plus_live_frames_visit(meet_variable, walk);
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(walk->types) && !walk->failed && !is_spent(walk);
         i++) {
        PyObject *type = PyList_GET_ITEM(walk->types, i);

        treat(walk, type);
        plus_referents_visit(type, meet, walk);
        empty_stack(walk);
    }
    if (walk->failed) {
        PyErr_NoMemory();
        return -1;
    }
    if (!is_spent(walk)) {
        PyUnstable_GC_VisitObjects(count_unheld, walk);
    }
    walk->report->kept = list_tallies(walk);
    return walk->report->kept != NULL ? 0 : -1;
}

/* Spared objects are treated like any other, and get their counts back: nobody counts meanwhile.  To ask for
 * each object of the heap whether it is one of them would cost more than all the rest. */
static Py_ssize_t *
save_counts(PyObject *spared)
{
    Py_ssize_t size = PyList_GET_SIZE(spared);
    Py_ssize_t *counts = PyMem_RawCalloc((size_t)size + 1, sizeof(*counts));

    for (Py_ssize_t i = 0; counts != NULL && i < size; i++) {
        PyObject *op = PyList_GET_ITEM(spared, i);
        counts[i] = plus_immortal_is(op) ? 0 : Py_REFCNT(op);
    }
    return counts;
}

static void
restore_counts(struct walk *walk, const Py_ssize_t *counts)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(walk->spared); i++) {
        PyObject *op = PyList_GET_ITEM(walk->spared, i);

        if (counts[i] > 0 && plus_immortal_is(op)) {
            plus_immortal_undo(op, counts[i]);
            walk->report->objects--;
            walk->report->bytes -= own_size(op);
        }
    }
}

int
plus_heap_immortalize(PyObject *types, PyObject *mortal, PyObject *spared, Py_ssize_t limit,
                      struct plus_heap_report *report)
{
    struct walk *walk = PyMem_RawCalloc(1, sizeof(*walk));
    Py_ssize_t *counts = save_counts(spared);
    int rc = -1;

    *report = (struct plus_heap_report){0};
    if (walk == NULL || counts == NULL) {
        PyErr_NoMemory();
        goto done;
    }
    walk->types = types;
    walk->mortal = mortal;
    walk->spared = spared;
    walk->limit = limit;
    walk->report = report;
    walk->leaves = PySet_New(NULL);
    if (walk->leaves != NULL) {
        rc = walk_everything(walk);
        restore_counts(walk, counts);
    }
    Py_XDECREF(walk->leaves);
    PyMem_RawFree(walk->tallies);
    PyMem_RawFree(walk->stack);
done:
    PyMem_RawFree(counts);
    PyMem_RawFree(walk);
    return rc;
}

#else /* no immortal objects */

int
plus_heap_immortalize(PyObject *types, PyObject *mortal, PyObject *spared, Py_ssize_t limit,
                      struct plus_heap_report *report)
{
    PyErr_SetString(PyExc_RuntimeError, plus_immortal_refusal());
    return -1;
}

#endif
