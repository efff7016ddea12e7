/* How the walk finds everything.
 *
 * The collector's lists hold the containers; plus_referents_visit leads to the referents of each.  A referent that is
 * in the lists is left for its own turn; any other (strings, numbers, tuples of such, code) is handled at once, with a
 * stack instead of recursion.
 *
 * Tuples and frozensets are the exception: being in the lists is not enough for them.
 *
 *     tuple(f(x) for x in ...)         C:  result = PyTuple_New(n)            in the lists from here on
 *                                          item = next(it)                    Python code; perhaps it forks
 *                                          _PyTuple_Resize(&result, ...)      SystemError unless its count is 1
 *
 * C code that fills a tuple (PySequence_Tuple, so also tuple(), f(*x) and namedtuple._make; PyTuple_SetItem in
 * extensions) or a frozenset (PySet_Add; marshal) requires that it holds the only reference, which is never so for an
 * immortal object.  Until the tuple is filled only a C variable holds it.  So a tuple is handled when it is met as a
 * referent of another object or as a variable of a running function, which shows that it was handed out, and never
 * because it has its turn; and the referents of a tuple that was not handed out do not count as handed out either.  A
 * few dozen stay mortal for this, because only C code and the interpreter's stack hold them.
 *
 * Rejected: looking for empty places (a tuple with as many places as were guessed has none while the next item is
 * fetched, and PyTuple_SetItem may replace one), and counting references to find the hidden one (mortal objects have
 * hidden references all over: the interpreter's stack, C variables).
 *
 * No other object of the lists needs a single reference while it is being built: lists, dicts and sets are filled
 * without a check.  The tuples that iterators use again (zip, enumerate, dict.items, itertools) are checked first, and
 * the iterator makes a new one.  Strings and bytes that are being built (_PyBytes_Resize, PyUnicode_Append) are not in
 * the lists, and code that grows them (s += x, io.BytesIO) copies them unless it holds the only reference.
 *
 * No set of visited objects is needed: an object is handled when it turns immortal, which happens once.  A second call
 * has to pass over everything again, for new objects may be reachable from old ones.
 */
#include "heap.h"

#include <frameobject.h>

#include "../../_base/memory/granules.h"
#include "../../_base/memory/object_stack.h"
#include "../../_base/rows.h"
#include "../../_interp/frames/live_frames.h"
#include "../../_interp/objects/immortal.h"
#include "../../_interp/objects/referents.h"

#ifdef PLUS_HAS_IMMORTAL

/* ------------------------------------------------------------------------------------------------
 * Objects that stay mortal
 */

enum verdict {
    MORTAL,
    IMMORTAL,
    WATCHABLE, /* immortal unless a weak reference with a callback points to it */
};

/* The verdict on a type, and its counts. */
struct kind {
    PyTypeObject *type;
    enum verdict verdict;
    Py_ssize_t kept,
        watched; /* objects that were kept mortal: for the type, for a weak reference */
};

struct walk {
    PyObject *types, *mortal, *spared; /* the caller's lists */
    Py_ssize_t limit;
    struct plus_heap_report *report;
    struct plus_record_table kinds;
    struct plus_granules leaves; /* mortal objects that may be met again */
    struct plus_object_stack stack;
    bool unheld; /* the object that is being visited may be a tuple that is still being filled */
    bool failed; /* out of memory */
};

static inline bool
is_spent(const struct walk *walk)
{
    return walk->report->bytes >= walk->limit;
}

/* True for the objects that C code fills while it must hold the only reference. */
static inline bool
is_filled_alone(PyObject *op)
{
    return PyTuple_Check(op) || PyFrozenSet_Check(op);
}

/* Compared by address: a metaclass may define how its types are hashed, in Python. */
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
    /* Each instance counts as a reference to its class, and ABCs watch classes. */
    bool watchable = type->tp_weaklistoffset != 0 && type != &PyFunction_Type &&
                     type != &PyModule_Type && !PyType_FastSubclass(type, Py_TPFLAGS_TYPE_SUBCLASS);
    return watchable ? WATCHABLE : IMMORTAL;
}

static struct kind *
kind_of(struct walk *walk, PyTypeObject *type)
{
    /* Without memory the walk fails, and does not count: `unknown` is never changed. */
    static struct kind unknown;
    struct kind *kind = plus_record_table_find(&walk->kinds, type);

    if (kind == NULL && (kind = plus_record_table_add(&walk->kinds, type)) != NULL) {
        kind->verdict = judge(walk, type);
    }
    walk->failed |= kind == NULL;
    return kind == NULL ? &unknown : kind;
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

/* Make one object immortal unless it has to stay mortal; true if it did. */
static bool
treat(struct walk *walk, PyObject *op)
{
    if (plus_immortal_is(op) || is_spent(walk)) {
        return false;
    }
    struct kind *kind = kind_of(walk, Py_TYPE(op));
    if (kind->verdict == MORTAL || (kind->verdict == WATCHABLE && is_watched(op)) ||
        !plus_immortal_may_be(op)) {
        /* Count an object that stays mortal, once.  A tracked object is met only in its turn, except tuples and
         * frozensets. */
        bool may_be_known = !plus_gc_is_tracked(op) || is_filled_alone(op);
        int is_new = may_be_known ? plus_granules_add(&walk->leaves, op) : 1;

        walk->failed |= is_new < 0;
        if (is_new > 0 && !walk->failed) {
            kind->kept += kind->verdict != WATCHABLE;
            kind->watched += kind->verdict == WATCHABLE;
        }
        return false;
    }
    walk->report->objects++;
    walk->report->bytes += own_size(op);
    plus_immortal_make(op);
    return true;
}

/* Handle a referent; a visitproc. */
static int
meet(PyObject *op, void *argument)
{
    struct walk *walk = argument;

    /* The order saves time: most referents have been handled. */
    if (op == NULL || plus_immortal_is(op)) {
        return 0;
    }
    if (is_filled_alone(op)) {
        if (walk->unheld) {
            return 0;
        }
    }
    else if (plus_gc_is_tracked(op)) {
        return 0; /* the walk over tracked objects visits `op` */
    }
    if (treat(walk, op) && plus_referents_possible(op)) {
        walk->failed |= plus_object_stack_push(&walk->stack, op) < 0;
    }
    return 0;
}

static void
empty_stack(struct walk *walk)
{
    while (walk->stack.depth > 0) {
        plus_referents_visit(walk->stack.items[--walk->stack.depth], meet, walk);
    }
}

/* True for a tuple or frozenset that would become immortal, but was not handed out yet. */
static bool
is_unheld(struct walk *walk, PyObject *op)
{
    if (!is_filled_alone(op) || plus_immortal_is(op)) {
        return false;
    }
    enum verdict verdict = kind_of(walk, Py_TYPE(op))->verdict;
    return verdict == IMMORTAL || (verdict == WATCHABLE && !is_watched(op));
}

/* Visit the collector's lists; a gcvisitobjects_t. */
static int
take_turn(PyObject *op, void *argument)
{
    struct walk *walk = argument;

    /* The walk's own lists are not part of the program. */
    if (op == walk->types || op == walk->mortal || op == walk->spared) {
        return 1;
    }
    walk->unheld = is_unheld(walk, op);
    if (!walk->unheld) {
        treat(walk, op);
    }
    plus_referents_visit(op, meet, walk);
    walk->unheld = false; /* the objects on the stack were handed out: code and the like */
    empty_stack(walk);
    return !walk->failed && !is_spent(walk);
}

/* Called for each object after the walk; a gcvisitobjects_t. */
static int
count_unheld(PyObject *op, void *argument)
{
    struct walk *walk = argument;

    walk->report->unheld += is_unheld(walk, op);
    return 1;
}

/* Handle a variable of a running function. */
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
list_kept(const struct walk *walk)
{
    PyObject *list = PyList_New(0);
    const struct kind *kind;

    for (size_t at = 0; list != NULL && (kind = plus_record_table_next(&walk->kinds, &at));) {
        if (kind->kept != 0 || kind->watched != 0) {
            plus_append_row(&list, Py_BuildValue("(Onn)", kind->type, kind->kept, kind->watched));
        }
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
    walk->report->kept = list_kept(walk);
    return walk->report->kept != NULL ? 0 : -1;
}

/* Spared objects are treated like any other, and their counts are restored: no count changes meanwhile.  Checking each
 * object of the heap for being one of them would cost more than all the rest. */
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
    struct walk walk = {.types = types,
                        .mortal = mortal,
                        .spared = spared,
                        .limit = limit,
                        .report = report,
                        .kinds = PLUS_RECORD_TABLE(struct kind)};

    /* These facts are used by plus_referents_visit, which goes on without those that do not hold.  They are proven
     * before counts are saved: a proof makes objects, some of which only the garbage collector frees. */
    (void)plus_fact_refusal(PLUS_FACT_GC_HEADER);
    (void)plus_fact_refusal(PLUS_FACT_INLINE_VALUES);
    Py_ssize_t *counts = save_counts(spared);

    *report = (struct plus_heap_report){0};
    if (counts == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    int rc = walk_everything(&walk);
    restore_counts(&walk, counts);
    PyMem_RawFree(counts);
    plus_record_table_clear(&walk.kinds);
    plus_granules_clear(&walk.leaves);
    plus_free(walk.stack.items);
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
