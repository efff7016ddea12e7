/* The segments of a free-threaded build's own mimalloc, found by the objects in them.
 *
 * mimalloc takes memory from the kernel in segments of 32 MiB, at multiples of that (Include/internal/mimalloc/mimalloc/types.h,
 * MI_SEGMENT_SHIFT), and does not tell which; a larger block has a segment of its own.  Rejected: its own walk over the heaps,
 * which is not exported. */
#include "../binding.h"

#ifdef Py_GIL_DISABLED

#include "../../_base/memory/record_table.h"
#include "../../_base/process/clock.h"
#include "../../_base/rows.h"
#include "../../_heap/heap_walk.h"
#include "../../_interp/objects/gc_objects.h"
#include "../../_interp/objects/object_parts.h"

#define SEGMENT_BYTES ((uintptr_t)32 << 20)

struct measured {
    PyTypeObject *type;
    struct plus_measuring how;
};

struct segment {
    uintptr_t start;
};

struct search {
    struct plus_record_table types, segments; /* of struct measured and struct segment */
    Py_ssize_t objects, bytes;
};

static int
note_segment(PyObject *op, bool frozen, void *arg)
{
    (void)frozen;
    return plus_record_table_get(arg, (void *)((uintptr_t)op & ~(SEGMENT_BYTES - 1))) == NULL
               ? -ENOMEM
               : 0;
}

static int
count(PyObject *op, PyObject *parent, enum plus_heap_origin origin, void *arg)
{
    struct search *search = arg;
    struct measured *type = plus_record_table_find(&search->types, Py_TYPE(op));

    (void)parent, (void)origin;
    if (type == NULL) {
        type = plus_record_table_add(&search->types, Py_TYPE(op));
        if (type == NULL) {
            return -ENOMEM;
        }
        type->how = plus_measuring_of(Py_TYPE(op));
    }
    struct plus_parts parts = plus_parts_of(&type->how, op);

    search->objects++;
    search->bytes += parts.object + parts.table + parts.values;
    return note_segment(op, false, &search->segments);
}

static PyObject *
rows_of(const struct plus_record_table *segments)
{
    PyObject *rows = PyList_New(0);
    const struct segment *each;

    for (size_t at = 0; rows != NULL && (each = plus_record_table_next(segments, &at)) != NULL;) {
        plus_append_row(&rows, Py_BuildValue("(KK)", (unsigned long long)each->start,
                                             (unsigned long long)(each->start + SEGMENT_BYTES)));
    }
    return rows;
}

PyObject *
plus_memory_mimalloc(PyObject *module, PyObject *walks)
{
    struct search search = {.types = PLUS_RECORD_TABLE(struct measured),
                            .segments = PLUS_RECORD_TABLE(struct segment)};
    const struct plus_heap_visitor visitor = {count, NULL, &search};
    PyObject *result = NULL;

    if (plus_heap_walk_raises()) {
        return NULL;
    }
    uint64_t since = plus_now_ns();
    int status = walks == Py_True ? plus_heap_walk(&visitor, NULL)
                                  : plus_gc_objects_visit(note_segment, &search.segments);

    if (status < 0) {
        PyErr_NoMemory();
    }
    else {
        uint64_t pause_ns = plus_now_ns() - since;
        PyObject *rows = rows_of(&search.segments);

        result = rows == NULL ? NULL
                              : Py_BuildValue("(nnNK)", search.objects, search.bytes, rows,
                                              (unsigned long long)pause_ns);
    }
    plus_record_table_clear(&search.types);
    plus_record_table_clear(&search.segments);
    return result;
}

#else

PyObject *
plus_memory_mimalloc(PyObject *module, PyObject *walks)
{
    Py_RETURN_NONE;
}

#endif
