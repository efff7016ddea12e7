/* An object in the collector's lists is visited there and needs no mark.  All others are handled at the first meeting,
 * which a set of bits records, with a stack for deep ones.
 *
 *     for each object of the lists:   tell it, follow it, empty the stack
 *     for each variable of a frame:   the same, if it is in no list and was not met
 *     follow:                         its class, if that is in no list; then each of its references:
 *                                     tell the reference; an object of the lists waits for its turn;
 *                                     any other, if it is new: tell it and follow it
 *
 * An object in no list is followed at once, NESTED deep: it is in the processor's cache then, and a list of a million
 * tuples puts none of them on the stack.  Deeper objects wait on the stack, so that no chain of objects uses up the C
 * stack.  The stack is empty at the end of each turn.
 *
 * The lists may not change during the walk.  So neither this code nor a visitor may make an object; and the facts that
 * the readers need have been proven before (plus_heap_walk_refusal), since a proof makes objects.
 *
 * Frames come last: so an object that is told as held by a frame was met nowhere else.
 *
 * Rejected: a set of all objects (most are in the lists, which serve as the set), and gc.get_objects() with
 * gc.get_referents(), which make lists of the whole heap and miss references that no tp_traverse tells.
 *
 * If the lists cannot be walked, gc_objects.h has a listing, with a set of its addresses.  Frozen objects are not in
 * it: they are handled when they are met, like objects that the collector does not track, and sys.modules is an
 * additional start for them. */
#include "heap_walk.h"

#include "../_base/memory/granules.h"
#include "../_base/memory/object_stack.h"
#include "../_base/raise.h"
#include "../_interp/facts/facts.h"
#include "../_interp/frames/live_frames.h"
#include "../_interp/objects/gc_objects.h"
#include "../_interp/objects/numpy_arrays.h"
#include "../_interp/objects/referents.h"
#include "../_interp/objects/world.h"

#define TYPES 256u /* a power of two */
#define NESTED                                                                                     \
    8 /* objects nested in objects that are followed at once; deeper ones have to wait on the stack */

struct walk {
    const struct plus_heap_visitor *visitor;
    struct plus_granules met;
    PyTypeObject *types[TYPES]; /* those met last, by address: classes share slots */
    PyObject *source;           /* the object whose references are being visited */
    struct plus_object_stack stack;
    unsigned nesting;
    bool by_listing;
};

static int
meet_type(struct walk *walk, PyTypeObject *type);
static int
follow(struct walk *walk, PyObject *op);

/* Follow at once while the object is in the cache; this also keeps a million items of a list off the stack. */
static int
follow_unlisted(struct walk *walk, PyObject *op)
{
    PyObject *source = walk->source;

    if (walk->nesting == NESTED) {
        return plus_object_stack_push(&walk->stack, op);
    }
    walk->nesting++;
    int stop = follow(walk, op);
    walk->nesting--;
    walk->source = source;
    return stop;
}

static int
tell(const struct walk *walk, PyObject *op, PyObject *parent, enum plus_heap_origin origin)
{
    const struct plus_heap_visitor *visitor = walk->visitor;

    return visitor->object == NULL ? 0 : visitor->object(op, parent, origin, visitor->arg);
}

/* Handle an object that the collector does not list. */
static int
meet_unlisted(struct walk *walk, PyObject *op, PyObject *parent, enum plus_heap_origin origin)
{
    int is_new = plus_granules_add(&walk->met, op);

    if (is_new <= 0) {
        return is_new;
    }
    int stop = tell(walk, op, parent, origin);
    if (stop != 0) {
        return stop;
    }
    return plus_referents_possible(op) ? follow_unlisted(walk, op) : meet_type(walk, Py_TYPE(op));
}

/* Built-in classes are in no list. */
static int
meet_type(struct walk *walk, PyTypeObject *type)
{
    size_t place = ((uintptr_t)type >> 4) % TYPES;

    if (walk->types[place] == type || PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE)) {
        return 0;
    }
    walk->types[place] = type;
    return meet_unlisted(walk, (PyObject *)type, NULL, PLUS_HEAP_AS_TYPE);
}

static bool
has_a_turn(const struct walk *walk, PyObject *op)
{
    return walk->by_listing ? plus_gc_objects_listed(op) : plus_gc_is_tracked(op);
}

/* A tracked object that is not in the listing is frozen; or, on a free-threaded build, newer than the listing. */
static int
meet_without_turn(struct walk *walk, PyObject *op, PyObject *parent, enum plus_heap_origin origin)
{
    if (walk->by_listing && plus_gc_is_tracked(op)) {
        return meet_unlisted(walk, op, NULL,
                             plus_gc_objects_is_newer(op) ? PLUS_HEAP_LISTED : PLUS_HEAP_FROZEN);
    }
    return meet_unlisted(walk, op, parent, origin);
}

static int
meet(PyObject *op, void *arg)
{
    struct walk *walk = arg;
    int stop = 0;

    if (op == NULL) {
        return 0;
    }
    if (walk->visitor->reference != NULL) {
        stop = walk->visitor->reference(walk->source, op, walk->visitor->arg);
    }
    if (stop != 0 || has_a_turn(walk, op)) {
        return stop;
    }
    return meet_without_turn(walk, op, walk->source, PLUS_HEAP_REFERRED);
}

static int
follow(struct walk *walk, PyObject *op)
{
    int stop = meet_type(walk, Py_TYPE(op));

    walk->source = op;
    return stop != 0 ? stop : plus_referents_visit(op, meet, walk);
}

static int
follow_stack(struct walk *walk)
{
    int stop = 0;

    while (stop == 0 && walk->stack.depth > 0) {
        stop = follow(walk, walk->stack.items[--walk->stack.depth]);
    }
    return stop;
}

static int
take_turn(PyObject *op, bool frozen, void *arg)
{
    struct walk *walk = arg;
    int stop = tell(walk, op, NULL, frozen ? PLUS_HEAP_FROZEN : PLUS_HEAP_LISTED);

    if (stop == 0) {
        stop = follow(walk, op);
    }
    return stop != 0 ? stop : follow_stack(walk);
}

static int
meet_in_frame(PyCodeObject *code, int index, PyObject *value, void *arg)
{
    struct walk *walk = arg;

    (void)code, (void)index;
    if (has_a_turn(walk, value)) {
        return 0;
    }
    int stop = meet_without_turn(walk, value, NULL, PLUS_HEAP_IN_FRAME);
    return stop != 0 ? stop : follow_stack(walk);
}

static int
meet_modules(struct walk *walk)
{
    PyObject *modules = PyImport_GetModuleDict();

    if (!walk->by_listing || has_a_turn(walk, modules)) {
        return 0;
    }
    int stop = meet_without_turn(walk, modules, NULL, PLUS_HEAP_REFERRED);
    return stop != 0 ? stop : follow_stack(walk);
}

const char *
plus_heap_walk_refusal(void)
{
    static const enum plus_fact asked[] = {PLUS_FACT_GC_HEADER, PLUS_FACT_GC_RINGS,
                                           PLUS_FACT_INLINE_VALUES, PLUS_FACT_OBJECT_SIZES};

    /* A walk asks for these facts and goes on without those that do not hold.  They are proven here: a proof makes
     * objects, and on 3.11 that may start the collector, which changes the lists. */
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        (void)plus_fact_refusal(asked[i]);
    }
    plus_numpy_arrays_learn();
    const char *refusal = plus_world_refusal();

    return refusal != NULL ? refusal : plus_fact_refusal(PLUS_FACT_FRAMES);
}

bool
plus_heap_walk_raises(void)
{
    const char *refusal = plus_heap_walk_refusal();
    char reason[256];

    if (refusal != NULL) {
        snprintf(reason, sizeof reason, "the heap cannot be walked: %s", refusal);
        plus_raise_unsupported(reason);
    }
    return refusal != NULL;
}

static int
walk_all(void *arg)
{
    struct walk *walk = arg;
    int stop = plus_gc_objects_visit(take_turn, walk);

    if (stop == 0) {
        stop = meet_modules(walk);
    }
    return stop != 0 ? stop : plus_live_frames_visit(meet_in_frame, walk);
}

int
plus_heap_walk(const struct plus_heap_visitor *visitor, size_t *extra_bytes)
{
    struct walk walk = {.visitor = visitor, .by_listing = plus_gc_objects_need_listing()};
    int stop = plus_gc_objects_begin();

    if (stop < 0) {
        return stop;
    }
    stop = plus_world_stopped(walk_all, &walk);
    if (extra_bytes != NULL) {
        *extra_bytes = plus_granules_bytes(&walk.met) + walk.stack.capacity * sizeof(PyObject *) +
                       plus_gc_objects_listing_bytes();
    }
    plus_gc_objects_end();
    plus_granules_clear(&walk.met);
    plus_free(walk.stack.items);
    return stop;
}

static int
is_it(PyObject *op, void *arg)
{
    return op == arg;
}

bool
plus_heap_refers(PyObject *from, const PyObject *to)
{
    return plus_referents_visit(from, is_it, (void *)to) != 0;
}
