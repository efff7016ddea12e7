/* The binding of pymalloc's arenas: their sums, and the objects in those that are mostly free. */
#include "../binding.h"

#include "../../_base/rows.h"

#include "../../_base/memory/page.h"
#include "../../_base/process/clock.h"
#include "../../_heap/heap_walk.h"
#include "../../_interp/objects/arenas.h"
#include "../../_interp/objects/gc_objects.h"
#include "pages.h"
#include "pins.h"

/* At most so many blocks are looked into, the freest arenas first: the search takes 64 bytes for each. */
#define BLOCKS_LIMIT ((size_t)256 * 1024)
/* An arena is looked into if more than this share of its resident memory is free. */
#define FREE_SHARE(bytes) ((bytes) / 4 * 3)

/* The sums of one arena.  Only bytes that are in memory count. */
struct summary {
    uintptr_t start, end;
    size_t taken, live, overhead, free, empty;
};

struct view {
    struct plus_arenas arenas;
    struct summary *summaries; /* one for each arena */
    struct plus_pages pages;   /* of one arena */
    struct plus_pinned *pinned;
    size_t pinned_count, arenas_pinned;
    uint64_t since; /* the GIL is held since then */
};

/* ---- sums ---------------------------------------------------------------------------------------- */

static void
add_pool(struct summary *summary, const struct plus_pages *pages, uintptr_t pool)
{
    const struct plus_pool_header *header = (const struct plus_pool_header *)pool;
    size_t resident = plus_pages_resident(pages, pool, pool + PLUS_POOL_BYTES);

    if (header->taken == 0) {
        summary->empty +=
            plus_pages_resident(pages, pool + plus_page_bytes(), pool + PLUS_POOL_BYTES);
        summary->free += resident;
        return;
    }
    size_t block = plus_pool_block_bytes(header);
    size_t overhead = PLUS_POOL_BYTES - plus_pool_blocks(header) * block, live;

    live = header->taken * block < resident ? header->taken * block : resident;
    overhead = overhead < resident - live ? overhead : resident - live;
    summary->taken += header->taken;
    summary->live += live;
    summary->overhead += overhead;
    summary->free += resident - live - overhead;
}

static int
summarise(struct summary *summary, const struct plus_arena *arena, struct plus_pages *pages)
{
    uintptr_t pool = plus_arena_pools(arena->start);
    int status = pages->states == NULL ? plus_pages_read(pages, arena->start, arena->end)
                                       : plus_pages_reread(pages, arena->start);

    if (status < 0) {
        return status;
    }
    *summary = (struct summary){.start = arena->start, .end = arena->end};
    summary->overhead = plus_pages_resident(pages, arena->start, pool);
    for (; pool < arena->carved; pool += PLUS_POOL_BYTES) {
        add_pool(summary, pages, pool);
    }
    summary->free += plus_pages_resident(pages, arena->carved, arena->end);
    return 0;
}

static int
summarise_all(struct view *view)
{
    view->summaries = calloc(view->arenas.count + 1, sizeof *view->summaries);
    int status = view->summaries == NULL ? -ENOMEM : 0;

    for (size_t i = 0; status == 0 && i < view->arenas.count; i++) {
        status = summarise(&view->summaries[i], &view->arenas.list[i], &view->pages);
    }
    return status;
}

/* ---- the arenas and blocks to look into ---------------------------------------------------------- */

static int
freest_first(const void *left, const void *right)
{
    const struct plus_pinned *a = left, *b = right;

    return a->free_bytes < b->free_bytes ? 1 : a->free_bytes > b->free_bytes ? -1 : 0;
}

static int
by_address(const void *left, const void *right)
{
    const struct plus_pinned *a = left, *b = right;

    return a->start < b->start ? -1 : a->start > b->start;
}

static void
choose_arenas(struct view *view)
{
    size_t count = 0, blocks = 0, kept = 0;

    for (size_t i = 0; i < view->arenas.count; i++) {
        const struct summary *each = &view->summaries[i];
        if (each->taken > 0 && each->free > FREE_SHARE(each->free + each->live + each->overhead)) {
            view->pinned[count++] = (struct plus_pinned){
                .start = each->start,
                .end = each->end,
                .taken = each->taken,
                .free_bytes = each->free,
            };
        }
    }
    qsort(view->pinned, count, sizeof *view->pinned, freest_first);
    while (kept < count && blocks + view->pinned[kept].taken <= BLOCKS_LIMIT) {
        blocks += view->pinned[kept++].taken;
    }
    view->pinned_count = view->arenas_pinned = kept;
}

/* Adds the blocks of the C heap that the caller asks for: a list of (start, end), none of which overlaps another or an
 * arena. */
static int
add_blocks(struct view *view, PyObject *blocks)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(blocks); i++) {
        unsigned long long start, end;
        if (!PyArg_Parse(PyList_GET_ITEM(blocks, i), "(KK):memory_arenas", &start, &end)) {
            return -1;
        }
        if (start >= end) {
            PyErr_SetString(PyExc_ValueError, "a block must have a length");
            return -1;
        }
        view->pinned[view->pinned_count++] = (struct plus_pinned){
            .start = (uintptr_t)start,
            .end = (uintptr_t)end,
            .is_block = true,
        };
    }
    qsort(view->pinned, view->pinned_count, sizeof *view->pinned, by_address);
    return 0;
}

/* ---- rows for Python ----------------------------------------------------------------------------- */

static PyObject *
arena_rows(const struct view *view)
{
    PyObject *rows = PyList_New(0);

    for (size_t i = 0; rows != NULL && i < view->arenas.count; i++) {
        const struct summary *each = &view->summaries[i];
        plus_append_row(&rows, Py_BuildValue("(KKnnnnn)", (unsigned long long)each->start,
                                             (unsigned long long)each->end, (Py_ssize_t)each->taken,
                                             (Py_ssize_t)each->live, (Py_ssize_t)each->overhead,
                                             (Py_ssize_t)each->free, (Py_ssize_t)each->empty));
    }
    return rows;
}

static PyObject *
pin_row(const struct plus_pin *pin)
{
    PyObject *type = pin->type == NULL ? Py_None : (PyObject *)pin->type;
    PyObject *example = pin->example == NULL ? Py_None : pin->example;

    return Py_BuildValue("(OOnnnO)", type, pin->is_object ? Py_True : Py_False,
                         (Py_ssize_t)pin->blocks, (Py_ssize_t)pin->bytes,
                         (Py_ssize_t)pin->held_bytes, example);
}

static PyObject *
pin_rows(const struct plus_pins *pins, Py_ssize_t limit)
{
    PyObject *rows = PyList_New(0);

    for (size_t i = 0; rows != NULL && i < pins->count && (Py_ssize_t)i < limit; i++) {
        plus_append_row(&rows, pin_row(&pins->list[i]));
    }
    if (rows != NULL && pins->unknown.blocks > 0) {
        plus_append_row(&rows, pin_row(&pins->unknown));
    }
    return rows;
}

/* Returns (start, owner, is_own) for each block that the caller asked for, by address. owner: its object, or the
 * object whose memory it is, or None. is_own: the owner belongs to the examinations. */
static PyObject *
owner_rows(const struct view *view, const struct plus_pins *pins, struct plus_own_objects *own)
{
    PyObject *rows = PyList_New(0);

    for (size_t i = 0; rows != NULL && i < view->pinned_count; i++) {
        if (!view->pinned[i].is_block) {
            continue;
        }
        PyObject *owner =
            pins->owners == NULL || pins->owners[i] == NULL ? Py_None : pins->owners[i];
        PyObject *is_own = plus_own_objects_has(own, owner) ? Py_True : Py_False;
        plus_append_row(&rows, Py_BuildValue("(KOO)", (unsigned long long)view->pinned[i].start,
                                             owner, is_own));
    }
    return rows;
}

/* Takes references to the found objects, which are borrowed.  The first row that is made may start the collector (up
 * to 3.11), which frees those that are garbage. */
static void
hold_all(const struct plus_pins *pins, size_t owners, bool release)
{
    for (size_t i = 0; i < pins->count; i++) {
        PyObject *type = (PyObject *)pins->list[i].type, *example = pins->list[i].example;
        release ? Py_XDECREF(type) : Py_XINCREF(type);
        release ? Py_XDECREF(example) : Py_XINCREF(example);
    }
    for (size_t i = 0; pins->owners != NULL && i < owners; i++) {
        release ? Py_XDECREF(pins->owners[i]) : Py_XINCREF(pins->owners[i]);
    }
}

/* Makes no Python object before the search has ended, because it would lie in the arenas.  Ends what
 * plus_gc_objects_begin() began before it makes the first one. */
static PyObject *
search(struct view *view, PyObject *blocks, Py_ssize_t pins_limit, struct plus_own_objects *own)
{
    struct plus_pins pins = {0};
    int status = 0;

    view->pinned =
        calloc(view->arenas.count + (size_t)PyList_GET_SIZE(blocks) + 1, sizeof *view->pinned);
    if (view->pinned != NULL && pins_limit > 0) {
        choose_arenas(view);
    }
    bool has_blocks = view->pinned != NULL && add_blocks(view, blocks) == 0;
    if (has_blocks) {
        status = plus_pins_find(&pins, view->pinned, view->pinned_count, own);
    }
    plus_gc_objects_end();
    if (view->pinned == NULL || (status < 0 && status != -ENOTSUP)) {
        return PyErr_NoMemory();
    }
    if (!has_blocks) {
        return NULL;
    }
    hold_all(&pins, view->pinned_count, false);
    PyObject *result = Py_BuildValue(
        "(nnNNNnOK(nnn))", (Py_ssize_t)view->arenas.taken_blocks, view->arenas.larger_blocks,
        arena_rows(view), pin_rows(&pins, pins_limit), owner_rows(view, &pins, own),
        (Py_ssize_t)view->arenas_pinned, status == 0 ? Py_True : Py_False,
        (unsigned long long)(plus_now_ns() - view->since), (Py_ssize_t)pins.own.blocks,
        (Py_ssize_t)pins.own.bytes, (Py_ssize_t)pins.own.held_bytes);
    hold_all(&pins, view->pinned_count, true);
    plus_pins_free(&pins);
    return result;
}

#define ATTEMPTS 4

/* The state of one attempt. begun: plus_gc_objects_begin() was called and has to be ended. */
struct attempt {
    struct plus_own_objects own;
    struct plus_segments segments;
    const char *refusal;
    bool begun;
};

static int
read_segments(struct plus_segments *segments, bool hold)
{
    PyThreadState *state = hold ? NULL : PyEval_SaveThread();
    int status = plus_segments_read(segments);

    if (state != NULL) {
        PyEval_RestoreThread(state);
    }
    return status;
}

/* Finds the arenas. hold: keep the GIL while the mappings are read, which takes longer than all the rest.  0 or
 * -ENOMEM. */
static int
try_once(struct view *view, struct attempt *it, PyObject *modules, bool hold)
{
    int status = read_segments(&it->segments, hold);

    if (status < 0) {
        return status;
    }
    view->since = plus_now_ns();
    /* The first call of these two makes objects and may start the collector, which could free an arena.  So call them
     * before the arenas are found. */
    (void)plus_heap_walk_refusal();
    it->refusal = plus_fact_refusal(PLUS_FACT_ARENAS);
    if (modules != NULL && plus_own_objects_find(&it->own, modules) < 0) {
        return -ENOMEM;
    }
    it->begun = it->refusal == NULL && plus_gc_objects_begin() == 0;
    if (it->begun) {
        it->refusal = plus_arenas_find(&view->arenas, &it->segments);
    }
    return 0;
}

static void
end_attempt(struct view *view, struct attempt *it)
{
    plus_own_objects_clear(&it->own);
    plus_segments_free(&it->segments);
    plus_arenas_free(&view->arenas);
    *it = (struct attempt){.begun = false};
}

PyObject *
plus_memory_arenas(PyObject *module, PyObject *args)
{
    PyObject *blocks, *modules = NULL, *result = NULL;
    struct view view = {0};
    struct attempt it = {.begun = false};
    Py_ssize_t pins_limit;

    if (!PyArg_ParseTuple(args, "O!n|O!:memory_arenas", &PyList_Type, &blocks, &pins_limit,
                          &PyDict_Type, &modules)) {
        return NULL;
    }
    int status = try_once(&view, &it, modules, false);
    /* The mappings were read without the GIL, so an arena that another thread has made since is missing.  Try again. */
    for (int i = 1; i < ATTEMPTS && status == 0 && it.begun && it.refusal != NULL; i++) {
        plus_gc_objects_end();
        end_attempt(&view, &it);
        status = try_once(&view, &it, modules, i == ATTEMPTS - 1);
    }
    if (status == 0 && it.begun && it.refusal == NULL && summarise_all(&view) == 0) {
        result = search(&view, blocks, pins_limit, &it.own);
    }
    else {
        if (it.begun) {
            plus_gc_objects_end();
        }
        result = it.refusal != NULL ? PyUnicode_FromString(it.refusal) : PyErr_NoMemory();
    }
    end_attempt(&view, &it);
    free(view.summaries);
    free(view.pinned);
    plus_pages_free(&view.pages);
    return result;
}
