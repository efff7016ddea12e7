/* Counts the objects that would be freed with an object, by counting references and without freeing anything.
 *
 *     roots    taken, whatever else refers to them
 *     taken    its referents are looked at, once: each reference to an object is counted in its record
 *     met      once all its references are counted, it is taken, too
 *
 * So an object is taken if all objects that refer to it are.  Only referents of taken objects are looked at: the walk
 * ends at shared objects, and its time depends on its result, not on the heap.  References to an object come one by
 * one, so it may be met many times before it is taken, or never be taken.  Members of a cycle refer to each other and
 * are never complete, unless one of them is a root: they are not counted, as held.h says.
 *
 * Spared objects are passed over: if a traceback is asked about, its frames refer to the exception.  Dicts are read
 * with their keys, because tp_traverse leaves out keys that are strings.
 *
 * The world stands still; nothing is changed and no Python code runs, so reference counts do not change meanwhile. */
#include "held.h"

#include "../../_base/memory/address_table.h"
#include "../../_base/memory/record_table.h"
#include "../../_interp/objects/referents.h"
#include "../../_interp/objects/sizes.h"
#include "../../_interp/objects/world.h"

/* ---- exceptions ---------------------------------------------------------------------------------- */

static PyObject *
traceback_of(PyObject *op)
{
    PyObject *traceback =
        PyExceptionInstance_Check(op) ? ((PyBaseExceptionObject *)op)->traceback : NULL;

    /* 3.11 keeps the None that removed a traceback. */
    return traceback == Py_None ? NULL : traceback;
}

PyObject *
plus_exceptions_among(PyObject *objects)
{
    PyObject *found = PyList_New(0);

    for (Py_ssize_t i = 0; found != NULL && i < PyList_GET_SIZE(objects); i++) {
        PyObject *op = PyList_GET_ITEM(objects, i);
        if (traceback_of(op) != NULL && PyList_Append(found, op) < 0) {
            Py_CLEAR(found);
        }
    }
    return found;
}

/* ---- referrers ----------------------------------------------------------------------------------- */

struct search {
    struct plus_address_table lists; /* by target: its list in `found`, borrowed */
    PyObject *found;
    PyObject *source;
};

static int
note_target(PyObject *op, void *arg)
{
    struct search *search = arg;
    const struct plus_address_slot *list = plus_address_table_find(&search->lists, op);

    return list == NULL ? 0 : PyList_Append(list->record, search->source);
}

static PyObject *
empty_lists(Py_ssize_t count)
{
    PyObject *lists = PyList_New(count);

    for (Py_ssize_t i = 0; lists != NULL && i < count; i++) {
        PyObject *list = PyList_New(0);
        if (list == NULL) {
            Py_CLEAR(lists);
            break;
        }
        PyList_SET_ITEM(lists, i, list);
    }
    return lists;
}

static int
search_all(struct search *search, PyObject *objects, PyObject *targets)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(objects); i++) {
        PyObject *op = PyList_GET_ITEM(objects, i);
        traverseproc traverse = Py_TYPE(op)->tp_traverse;

        if (op == objects || op == targets || op == search->found || traverse == NULL) {
            continue;
        }
        int status;

        search->source = op;
        PLUS_BEGIN_LOCKED(op);
        status = traverse(op, note_target, search);
        PLUS_END_LOCKED();
        if (status != 0) {
            return -1;
        }
    }
    return 0;
}

PyObject *
plus_referrers_among(PyObject *objects, PyObject *targets)
{
    struct search search = {.found = empty_lists(PyList_GET_SIZE(targets))};

    if (search.found == NULL) {
        return NULL;
    }
    if (PyList_GET_SIZE(search.found) !=
        PyList_GET_SIZE(targets)) { /* a collection ran meanwhile */
        Py_DECREF(search.found);
        PyErr_SetString(PyExc_RuntimeError, "the list of targets changed");
        return NULL;
    }
    if (plus_address_table_reserve(&search.lists, (size_t)PyList_GET_SIZE(targets)) < 0) {
        Py_DECREF(search.found);
        return PyErr_NoMemory();
    }
    for (Py_ssize_t i = PyList_GET_SIZE(targets); i-- > 0;) {
        plus_address_table_get(&search.lists, PyList_GET_ITEM(targets, i))->record =
            PyList_GET_ITEM(search.found, i);
    }
    if (search_all(&search, objects, targets) < 0) {
        Py_CLEAR(search.found);
    }
    plus_address_table_clear(&search.lists);
    return search.found;
}

/* ---- objects that are freed with an object ------------------------------------------------------- */

/* An object that was met.  It is taken once as many references to it were met as it has. */
struct met {
    PyObject *op;
    struct met *next; /* the next one in `waiting` */
    Py_ssize_t references;
    bool taken;
};

struct taking {
    PyObject *const *roots;
    Py_ssize_t root_count;
    struct plus_record_table met;
    struct met *waiting;     /* taken, not traversed yet */
    PyObject *const *spared; /* objects that do not count, nor do references to them */
    Py_ssize_t spares;
    Py_ssize_t objects, size_bytes;
};

static void
take(struct taking *taking, struct met *met)
{
    met->taken = true;
    met->next = taking->waiting;
    taking->waiting = met;
    taking->objects++;
    taking->size_bytes += plus_object_bytes(met->op);
}

static bool
is_spared(const struct taking *taking, const PyObject *op)
{
    for (Py_ssize_t i = 0; i < taking->spares; i++) {
        if (taking->spared[i] == op) {
            return true;
        }
    }
    return false;
}

static int
meet(PyObject *op, void *arg)
{
    struct taking *taking = arg;

    if (is_spared(taking, op)) {
        return 0;
    }
    struct met *met = plus_record_table_get(&taking->met, op);
    if (met == NULL) {
        return -1;
    }
    met->references++;
    if (!met->taken && met->references == Py_REFCNT(op)) {
        take(taking, met);
    }
    return 0;
}

static int
meet_referents(PyObject *op, struct taking *taking)
{
    if (PyDict_CheckExact(op)) {
        /* Meet keys and values: a dict's tp_traverse leaves out keys that are strings. */
        Py_ssize_t position = 0;
        PyObject *key, *value;
        int status = 0;

        while (status == 0 && PyDict_Next(op, &position, &key, &value)) {
            status = meet(key, taking);
            if (status == 0) {
                status = meet(value, taking);
            }
        }
        return status;
    }
    return plus_can_be_traversed(op) ? Py_TYPE(op)->tp_traverse(op, meet, taking) : 0;
}

/* Takes the roots, whatever else refers to them. */
static int
take_roots(struct taking *taking)
{
    for (Py_ssize_t i = 0; i < taking->root_count; i++) {
        PyObject *root = taking->roots[i];

        if (meet(root, taking) < 0) {
            return -1;
        }
        struct met *met = plus_record_table_find(&taking->met, root); /* NULL: it is spared */
        if (met != NULL && !met->taken) {
            take(taking, met);
        }
    }
    return 0;
}

static int
take_all(void *arg)
{
    struct taking *taking = arg;
    int status = take_roots(taking);

    while (status == 0 && taking->waiting != NULL) {
        struct met *met = taking->waiting;
        taking->waiting = met->next;
        status = meet_referents(met->op, taking);
    }
    return status;
}

int
plus_exclusively_held(PyObject *const *roots, Py_ssize_t count, PyObject *const *spared,
                      Py_ssize_t spares, Py_ssize_t *objects, Py_ssize_t *size_bytes)
{
    struct taking taking = {.roots = roots,
                            .root_count = count,
                            .met = PLUS_RECORD_TABLE(struct met),
                            .spared = spared,
                            .spares = spares};
    int status = plus_world_stopped(take_all, &taking);

    plus_record_table_clear(&taking.met);
    if (status != 0) {
        PyErr_NoMemory();
        return -1;
    }
    *objects = taking.objects;
    *size_bytes = taking.size_bytes;
    return 0;
}

int
plus_traceback_holds(PyObject *exception, Py_ssize_t *objects, Py_ssize_t *size_bytes)
{
    PyObject *traceback = traceback_of(exception);

    *objects = *size_bytes = 0;
    if (traceback == NULL) {
        return 0;
    }
    return plus_exclusively_held(&traceback, 1, &exception, 1, objects, size_bytes);
}
