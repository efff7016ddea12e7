/* The collector's state has one ring for each generation, one behind the other, and one for frozen objects
 * (Include/internal/pycore_gc.h, 'struct _gc_runtime_state'; pycore_interp_structs.h from 3.14 on):
 *
 *     generations[0] | generations[1] | generations[2] | [generation0, up to 3.13] | permanent
 *
 * each with a head, which is part of the ring, a threshold and a count.  A new object is put in front of the youngest
 * ring's head: so the link of a new object leads to the head, and no offset has to be known.
 *
 * Debian's 3.13 aligns a head to 4 bytes only, by a patch of its own (gchead-alignment.diff, since 3.13.5-1).  There
 * the generations begin at an odd multiple of 4, and `generation0`, a plain pointer, 4 bytes behind their end.  So
 * `struct link` is declared with an alignment of 4 bytes, and the compiler reads it correctly at any such address.
 *
 * Why not PyUnstable_GC_VisitObjects(): 3.11 does not have it, and in the first releases of 3.12 and 3.13 it leaves out
 * frozen objects (gh-131740), most of the heap of a server that calls gc.freeze() before it forks.
 *
 * If the rings are not found, the objects are those of gc.get_objects():
 *
 *     begin: [get_objects: list] -> addresses, and the set of them -> the list is dropped -> visit, visit ... -> end
 *
 * The list holds a reference to each object, but visitors rely on reference counts: so it is dropped before the first
 * visit.  Only addresses are left, which are valid as long as no object is freed.  Rejected here too:
 * PyUnstable_GC_VisitObjects().  It would save the list, but two ways would have to be tested for one rare case, and it
 * holds a reference during each visit.
 *
 * A free-threaded build has no rings.  Its other threads free objects between the listing and the walk (world.h): so the list
 * stays, and plus_gc_objects_references() leaves its references out.  One thread at a time has a listing; `user` excludes
 * the others. */
#include "gc_objects.h"

#include "../../_base/memory/granules.h"
#include "../../_base/memory/own_memory.h"
#include "../facts/facts.h"
#include "../facts/probes.h"

#ifdef Py_GIL_DISABLED
#ifndef Py_BUILD_CORE
#define Py_BUILD_CORE 1
#endif
#include <internal/pycore_gc.h>
#endif

#include <stdalign.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#define GENERATIONS 3
#define FLAG_BITS ((uintptr_t)3) /* of a link: the collector's flags */

struct link {
    uintptr_t next, prev;
} __attribute__((packed, aligned(4)));

struct generation {
    struct link head;
    int threshold, count;
};

/* Found once; the interpreter's state does not move. */
static struct {
    bool tried;
    struct generation *generations;
    struct link *frozen;
    int64_t interpreter;
} rings;

static struct link *
next_of(const struct link *link)
{
    return (struct link *)(link->next & ~FLAG_BITS);
}

static struct link *
prev_of(const struct link *link)
{
    return (struct link *)(link->prev & ~FLAG_BITS);
}

static PyObject *
object_of(struct link *link)
{
    return (PyObject *)(link + 1);
}

/* Read through the kernel, as `address` may be invalid. */
static bool
read_link(const struct link *address, struct link *copy)
{
    return plus_read_memory((uintptr_t)address, copy, sizeof *copy);
}

static bool
is_ring(const struct link *head)
{
    struct link own, next, prev;

    return read_link(head, &own) && read_link(next_of(&own), &next) &&
           read_link(prev_of(&own), &prev) && prev_of(&next) == head && next_of(&prev) == head;
}

/* The thresholds are the part of the state that the program can read, so they identify it. */
static bool
has_thresholds(const struct generation *generations)
{
    PyObject *gc = PyImport_ImportModule("gc");
    PyObject *told = gc == NULL ? NULL : PyObject_CallMethod(gc, "get_threshold", NULL);
    bool equal = told != NULL && PyTuple_CheckExact(told) && PyTuple_GET_SIZE(told) == GENERATIONS;

    /* 3.14.0 returns 0 for the oldest, whose threshold it does not use. */
    for (int i = 0; equal && i < GENERATIONS - 1; i++) {
        equal = PyLong_AsLong(PyTuple_GET_ITEM(told, i)) == generations[i].threshold;
    }
    Py_XDECREF(told);
    Py_XDECREF(gc);
    return equal;
}

/* The permanent generation is right behind the others, or behind the pointer `generation0`, which has a pointer's
 * alignment and points to the youngest one. */
static struct link *
find_frozen(struct generation *generations)
{
    uintptr_t behind = (uintptr_t)&generations[GENERATIONS], word;
    uintptr_t pointer = (behind + alignof(void *) - 1) & ~(uintptr_t)(alignof(void *) - 1);

    memcpy(&word, (const void *)pointer, sizeof word);
    return (struct link *)(word == (uintptr_t)generations ? pointer + sizeof(void *) : behind);
}

/* The ring's head that a new object is linked to; NULL if it cannot be read. */
static struct generation *
youngest(void)
{
    PyObject *probe = PyList_New(0);

    if (probe == NULL) {
        return NULL;
    }
    struct link *link = PLUS_AT(PLUS_FACT_GC_RINGS, (struct link *)probe - 1), own, behind;
    struct generation *head = NULL, copy[GENERATIONS + 1];

    /* The memory of all rings behind the head must be readable too. */
    if (read_link(link, &own) && read_link(next_of(&own), &behind) && prev_of(&behind) == link &&
        plus_read_memory((uintptr_t)next_of(&own), copy, sizeof copy)) {
        head = (struct generation *)next_of(&own);
    }
    Py_DECREF(probe);
    return head;
}

/* The order matters: each check makes the next one safe. */
static void
find_rings(void)
{
    struct generation *generations = youngest();
    bool has_them = generations != NULL && has_thresholds(generations);

    rings.tried = PyErr_Occurred() == NULL;
    rings.interpreter = PyInterpreterState_GetID(PyInterpreterState_Get());
    if (!has_them) {
        return;
    }
    struct link *frozen = find_frozen(generations);
    if (is_ring(&generations[0].head) && is_ring(&generations[1].head) &&
        is_ring(&generations[2].head) && is_ring(frozen)) {
        rings.generations = generations;
        rings.frozen = frozen;
    }
}

const char *
plus_probe_gc_rings(void)
{
    if (PyInterpreterState_GetID(PyInterpreterState_Get()) != rings.interpreter || !rings.tried) {
        rings.generations = NULL;
        find_rings();
    }
    if (rings.generations != NULL) {
        return NULL;
    }
    if (!plus_memory_is_readable()) {
        return PLUS_MEMORY_UNREADABLE;
    }
    return "the garbage collector's lists are not laid out as expected";
}

/* Guarded by the GIL, or by `user`. */
static struct {
    unsigned begun; /* number of beginnings without an end */
    PyObject **objects;
    size_t count;
    struct plus_granules addresses;
#ifdef Py_GIL_DISABLED
    PyObject
        *list; /* keeps the objects alive: the other threads go on until the world is stopped */
#endif
} listing;

bool
plus_gc_objects_need_listing(void)
{
    return rings.generations == NULL;
}

static void
clear_listing(void)
{
    free(listing.objects);
    plus_granules_clear(&listing.addresses);
    listing.objects = NULL;
    listing.count = 0;
}

/* A new list, or NULL without an exception.  A replacement of gc.get_objects is not called: its result may hold the
 * only reference to an object. */
static PyObject *
get_objects(void)
{
    PyObject *gc = PyImport_ImportModule("gc");
    PyObject *function = gc == NULL ? NULL : PyObject_GetAttrString(gc, "get_objects");
    PyObject *list = NULL;

    if (function != NULL && PyCFunction_CheckExact(function)) {
        list = PyObject_CallNoArgs(function);
    }
    Py_XDECREF(function);
    Py_XDECREF(gc);
    PyErr_Clear();
    return list;
}

/* An object that is being freed has no reference but the list's, and would be freed again with the list.  A free-threaded
 * build frees no object that has a reference, and lists none that has not. */
static void
take_from_list(PyObject *list, Py_ssize_t i)
{
#ifndef Py_GIL_DISABLED
    PyObject *op = PyList_GET_ITEM(list, i);

    if (Py_REFCNT(op) == 1) {
        Py_SET_REFCNT(op, 0);
        PyList_SET_ITEM(list, i, Py_NewRef(Py_None));
    }
#else
    (void)list, (void)i;
#endif
}

static int
take_listing(PyObject *list)
{
    Py_ssize_t size = PyList_GET_SIZE(list);
    int status = 0;

    listing.objects = malloc(((size_t)size + 1) * sizeof *listing.objects);
    for (Py_ssize_t i = 0; i < size; i++) {
        PyObject *op = PyList_GET_ITEM(list, i);

        take_from_list(list, i);
        if (listing.objects == NULL || plus_granules_add(&listing.addresses, op) < 0) {
            status = -ENOMEM;
            continue;
        }
        listing.objects[listing.count++] = op;
    }
    if (status < 0) {
        clear_listing();
    }
    return status;
}

#ifdef Py_GIL_DISABLED
/* The thread with the listing, and its process: a forked child has the words of a thread that it does not have. */
static struct {
    _Atomic unsigned long thread;
    _Atomic pid_t process;
} user;

static void
enter(void)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    unsigned long self = PyThread_get_thread_ident(), none = 0;

    if (atomic_load(&user.thread) == self) {
        return;
    }
    while (!atomic_compare_exchange_strong(&user.thread, &none, self)) {
        if (none != 0 && atomic_load(&user.process) != getpid()) {
            atomic_store(&user.thread, 0);
            listing.begun = 0;
            clear_listing();
        }
        none = 0;
        Py_BEGIN_ALLOW_THREADS;
        (void)nanosleep(&moment, NULL);
        Py_END_ALLOW_THREADS;
    }
    atomic_store(&user.process, getpid());
}

/* Destructors of objects that only the list still has run at the end, when the next thread may have a listing. */
static void
leave(void)
{
    PyObject *list = listing.list;

    listing.list = NULL;
    atomic_store(&user.thread, 0);
    Py_XDECREF(list);
}
#else
static void
enter(void)
{
}

static void
leave(void)
{
}
#endif

int
plus_gc_objects_begin(void)
{
    enter();
    if (rings.generations == NULL && listing.begun == 0) {
        int was_enabled = PyGC_Disable(); /* on 3.11 a new list may start the collector */
        PyObject *list = get_objects();
        int status = list == NULL ? -EPERM : take_listing(list);

#ifdef Py_GIL_DISABLED
        listing.list = status < 0 ? NULL : Py_NewRef(list);
#endif
        Py_XDECREF(list);
        if (was_enabled) {
            PyGC_Enable();
        }
        if (status < 0) {
            leave();
            return status;
        }
    }
    listing.begun++;
    return 0;
}

void
plus_gc_objects_end(void)
{
    if (--listing.begun == 0) {
        clear_listing();
        leave();
    }
}

#ifdef Py_GIL_DISABLED
bool
plus_gc_objects_is_newer(const PyObject *op)
{
    return (op->ob_gc_bits & _PyGC_BITS_FROZEN) == 0;
}

Py_ssize_t
plus_gc_objects_references(PyObject *op)
{
    Py_ssize_t references = Py_REFCNT(op);

    if (plus_compat_is_immortal(op) || (op->ob_gc_bits & _PyGC_BITS_DEFERRED) != 0) {
        return PLUS_REFERENCES_UNKNOWN;
    }
    return listing.count > 0 && plus_gc_objects_listed(op) ? references - 1 : references;
}
#endif

size_t
plus_gc_objects_listing_bytes(void)
{
    return listing.count * sizeof *listing.objects + plus_granules_bytes(&listing.addresses);
}

bool
plus_gc_objects_listed(const PyObject *op)
{
    return plus_granules_has(&listing.addresses, op) != 0;
}

static int
visit_ring(struct link *head, bool frozen, int (*visit)(PyObject *, bool, void *), void *arg)
{
    for (struct link *link = next_of(head); link != head; link = next_of(link)) {
        __builtin_prefetch(next_of(link));
        int stop = visit(object_of(link), frozen, arg);
        if (stop != 0) {
            return stop;
        }
    }
    return 0;
}

int
plus_gc_objects_visit(int (*visit)(PyObject *op, bool frozen, void *arg), void *arg)
{
    if (rings.generations == NULL) {
        int stop = plus_gc_objects_begin();

        if (stop < 0) {
            return stop;
        }
        for (size_t i = 0; stop == 0 && i < listing.count; i++) {
            stop = visit(listing.objects[i], false, arg);
        }
        plus_gc_objects_end();
        return stop;
    }
    for (int i = 0; i < GENERATIONS; i++) {
        int stop = visit_ring(&rings.generations[i].head, false, visit, arg);
        if (stop != 0) {
            return stop;
        }
    }
    return visit_ring(rings.frozen, true, visit, arg);
}
