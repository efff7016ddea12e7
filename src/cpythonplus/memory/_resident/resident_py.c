/* The binding of the C heap and of this process's pages. */
#include "../binding.h"

#include "../../_base/rows.h"

#include <malloc.h>

#include "../../_base/memory/page.h"
#include "../../_base/memory/segments.h"
#include "../../_base/methods.h"
#include "../../_base/process/clock.h"
#include "../../_interp/objects/pools.h"
#include "../_trim/c_allocator.h"
#include "c_heap.h"
#include "pages.h"

/* Returns the last chunks, the topmost first. */
static PyObject *
chunk_rows(const struct plus_c_heap *heap)
{
    PyObject *rows = PyList_New(0);

    for (size_t i = 0; rows != NULL && i < heap->chunks && i < PLUS_C_HEAP_LAST; i++) {
        const struct plus_c_heap_chunk *each =
            &heap->last[(heap->chunks - 1 - i) % PLUS_C_HEAP_LAST];
        plus_append_row(&rows, Py_BuildValue("(KnnO)", (unsigned long long)each->start,
                                             (Py_ssize_t)each->bytes, (Py_ssize_t)each->free_below,
                                             each->cached ? Py_True : Py_False));
    }
    return rows;
}

static PyObject *
heap_row(const struct plus_c_heap *heap, uintptr_t end, uint64_t pause_ns)
{
    return Py_BuildValue("(KnnnnnNK)", (unsigned long long)end, (Py_ssize_t)heap->used,
                         (Py_ssize_t)heap->cached, (Py_ssize_t)heap->free, (Py_ssize_t)heap->top,
                         (Py_ssize_t)heap->returnable, chunk_rows(heap),
                         (unsigned long long)pause_ns);
}

/* Sums up a heap.  Other threads run meanwhile; with `hold`, only those that are in C. */
static PyObject *
memory_c_heap(PyObject *module, PyObject *args)
{
    unsigned long long start, end;
    struct plus_c_heap heap;
    uintptr_t key, heap_end = 0;
    int is_main, hold, status;

    if (!PyArg_ParseTuple(args, "KKpp:memory_c_heap", &start, &end, &is_main, &hold)) {
        return NULL;
    }
    if (start >= end) {
        PyErr_SetString(PyExc_ValueError, "the heap must have a length");
        return NULL;
    }
    uint64_t since = plus_now_ns();
    PyThreadState *state = hold ? NULL : PyEval_SaveThread();
    if (!plus_c_heap_known(&key)) {
        status = -ENOENT;
    }
    else if (is_main) {
        heap_end = (uintptr_t)end;
        status = plus_c_heap_walk(&heap, (uintptr_t)start, (uintptr_t)start, heap_end, key);
    }
    else {
        status = plus_c_heap_walk_thread(&heap, (uintptr_t)start, (uintptr_t)end, key, &heap_end);
    }
    uint64_t pause_ns = hold ? plus_now_ns() - since : 0;
    if (state != NULL) {
        PyEval_RestoreThread(state);
    }
    return status < 0 ? PyLong_FromLong(-status) : heap_row(&heap, heap_end, pause_ns);
}

/* Returns the beginning of the next block with a mapping of its own, or pages->end.  Needs no GIL: each other page
 * costs a system call, and there may be some 100,000 of them. */
static uintptr_t
next_mapped(const struct plus_pages *pages, uintptr_t at, size_t enough, Py_ssize_t *probes,
            size_t *bytes)
{
    for (; at < pages->end && *probes > 0; at += plus_page_bytes()) {
        if (!plus_pages_has(pages, at)) {
            continue;
        }
        *bytes = plus_c_heap_mapped(at, pages->end - at);
        if (*bytes > 0 && *bytes <= enough) {
            return at;
        }
        --*probes;
    }
    return pages->end;
}

static PyObject *
find_mapped(const struct plus_pages *pages, size_t enough, Py_ssize_t probes)
{
    PyObject *found = PyList_New(0);
    uintptr_t at = pages->start;
    size_t bytes = 0;

    while (found != NULL && enough > 0) {
        Py_BEGIN_ALLOW_THREADS;
        at = next_mapped(pages, at, enough, &probes, &bytes);
        Py_END_ALLOW_THREADS;
        if (at >= pages->end) {
            break;
        }
        plus_append_row(&found,
                        Py_BuildValue("(Knn)", (unsigned long long)at, (Py_ssize_t)bytes,
                                      (Py_ssize_t)plus_pages_resident(pages, at, at + bytes)));
        enough -= bytes;
        at += bytes;
    }
    return found;
}

static PyObject *
memory_large_blocks(PyObject *module, PyObject *args)
{
    unsigned long long start, end;
    Py_ssize_t enough, probes;
    struct plus_pages pages;

    if (!PyArg_ParseTuple(args, "KKnn:memory_large_blocks", &start, &end, &enough, &probes)) {
        return NULL;
    }
    if (start >= end || enough <= 0 ||
        plus_pages_read(&pages, (uintptr_t)start, (uintptr_t)end) < 0) {
        return PyList_New(0);
    }
    PyObject *found = find_mapped(&pages, (size_t)enough, probes);
    plus_pages_free(&pages);
    return found;
}

static PyObject *
memory_resident_bytes(PyObject *module, PyObject *args)
{
    unsigned long long start, end;
    struct plus_pages pages;

    if (!PyArg_ParseTuple(args, "KK:memory_resident_bytes", &start, &end)) {
        return NULL;
    }
    if (start >= end || plus_pages_read(&pages, (uintptr_t)start, (uintptr_t)end) < 0) {
        return PyLong_FromLong(0);
    }
    size_t resident = plus_pages_resident(&pages, pages.start, pages.end);
    plus_pages_free(&pages);
    return PyLong_FromSize_t(resident);
}

static PyObject *
memory_read_words(PyObject *module, PyObject *args)
{
    unsigned long long address, words[1024];
    Py_ssize_t count;

    if (!PyArg_ParseTuple(args, "Kn:memory_read_words", &address, &count)) {
        return NULL;
    }
    if (count < 0 || count > (Py_ssize_t)(sizeof words / sizeof words[0])) {
        PyErr_SetString(PyExc_ValueError, "too many words");
        return NULL;
    }
    if (!plus_read_memory((uintptr_t)address, words, (size_t)count * sizeof words[0])) {
        count = 0;
    }
    PyObject *result = PyTuple_New(count);
    for (Py_ssize_t i = 0; result != NULL && i < count; i++) {
        PyObject *word = PyLong_FromUnsignedLongLong(words[i]);
        if (word == NULL) {
            Py_CLEAR(result);
            break;
        }
        PyTuple_SET_ITEM(result, i, word);
    }
    return result;
}

static PyObject *
memory_malloc_totals(PyObject *module, PyObject *ignored)
{
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33) /* mallinfo2 */
    struct mallinfo2 info;

    /* mallinfo2() goes through all free blocks. */
    Py_BEGIN_ALLOW_THREADS;
    info = mallinfo2();
    Py_END_ALLOW_THREADS;
    return Py_BuildValue("(nnnnnn)", (Py_ssize_t)info.arena, (Py_ssize_t)info.uordblks,
                         (Py_ssize_t)info.fordblks, (Py_ssize_t)info.keepcost,
                         (Py_ssize_t)info.fsmblks, (Py_ssize_t)info.hblkhd);
#else
    Py_RETURN_NONE;
#endif
}

static PyObject *
memory_foreign_malloc(PyObject *module, PyObject *ignored)
{
    size_t used_bytes, resident_bytes;
    const char *name = plus_c_allocator_ask(&used_bytes, &resident_bytes);

    if (name == NULL) {
        Py_RETURN_NONE;
    }
    return Py_BuildValue("(snn)", name, (Py_ssize_t)used_bytes, (Py_ssize_t)resident_bytes);
}

static PyObject *
memory_segments(PyObject *module, PyObject *ignored)
{
    struct plus_segments segments;
    int status;

    Py_BEGIN_ALLOW_THREADS
    status = plus_segments_read(&segments);
    Py_END_ALLOW_THREADS
    PyObject *rows = status < 0 ? PyErr_NoMemory() : PyList_New(0);
    for (size_t i = 0; rows != NULL && i < segments.count; i++) {
        plus_append_row(&rows, Py_BuildValue("(KK)", (unsigned long long)segments.list[i].start,
                                             (unsigned long long)segments.list[i].end));
    }
    plus_segments_free(&segments);
    return rows;
}

PyMethodDef plus_memory_resident_methods[] = {
    PLUS_METHOD(
        "memory_arenas", plus_memory_arenas, METH_VARARGS, "$module, blocks, pins, own={}, /",
        "Return what is in pymalloc's arenas, or why it cannot be seen: a str.\n\n"
        "blocks: (start, end) of blocks of the C heap whose owner is asked for;\n"
        "pins: for so many types find what lies in arenas that are mostly free.\n"
        "own: namespaces of the modules that examinations have brought, by name.\n"
        "(blocks taken, blocks from malloc or -1, rows of arenas, rows of pins, rows of\n"
        "owners, arenas looked into, whether the heap could be walked, ns that the GIL was\n"
        "held, blocks, bytes and bytes held back by what is of `own`). A row of arenas has\n"
        "start, end, blocks taken, bytes in memory that are live, overhead, free, in empty "
        "pools.\n"
        "A row of pins has type or None, whether they are objects, blocks, bytes, bytes held\n"
        "back, an example. A row of owners has the block's start, the object, whether it is of "
        "`own`."),
    PLUS_METHOD(
        "memory_c_heap", memory_c_heap, METH_VARARGS, "$module, start, end, is_main, hold, /",
        "Return what is in a heap of glibc's malloc, or the number of an error.\n\n"
        "is_main: the main heap, else one of another arena that begins at `start` and ends\n"
        "before `end`; hold: keep the GIL. (end, bytes in memory that are used, in threads'\n"
        "caches, free, at the top, those that malloc_trim can give back, the last chunks, ns\n"
        "that the GIL was held). A chunk, the topmost first, has address, bytes, bytes free "
        "directly\n"
        "below it, whether it is in a thread's cache."),
    PLUS_METHOD(
        "memory_mimalloc", plus_memory_mimalloc, METH_O, "$module, walks, /",
        "Return (objects, their bytes, (start, end) of mimalloc's segments with objects, ns\n"
        "that the program was paused) on a free-threaded build, else None.\n\n"
        "walks: count objects, too; else these are 0."),
    PLUS_METHOD("memory_large_blocks", memory_large_blocks, METH_VARARGS,
                "$module, start, end, enough, probes, /",
                "Return (address, bytes, bytes in memory) of malloc's blocks with own mappings.\n\n"
                "enough: ends when so many bytes are found; probes: and when so many pages were\n"
                "none's beginning."),
    PLUS_METHOD("memory_resident_bytes", memory_resident_bytes, METH_VARARGS,
                "$module, start, end, /",
                "Return how much of a range is in memory; 0 if some of it is not mapped."),
    PLUS_METHOD("memory_read_words", memory_read_words, METH_VARARGS, "$module, address, count, /",
                "Return that many words of this process's memory, or none."),
    PLUS_METHOD("memory_malloc_totals", memory_malloc_totals, METH_NOARGS, "$module, /",
                "Return glibc's own sums, or None.\n\n"
                "Bytes of its heaps, used, free, at the main heap's top, in fastbins, in mappings\n"
                "of their own."),
    PLUS_METHOD("memory_foreign_malloc", memory_foreign_malloc, METH_NOARGS, "$module, /",
                "Return name, used and resident bytes of another allocator, or None."),
    PLUS_METHOD("memory_segments", memory_segments, METH_NOARGS, "$module, /",
                "Return (start, end) of the variables of the program and of each library."),
    {NULL, NULL, 0, NULL},
};
