/* The binding of pool_pages.c, c_allocator.c and heap_trimmer.c. */
#include "../binding.h"

#include "../../_base/methods.h"
#include "../../_base/process/behind_fork.h"
#include "../../_base/raise.h"
#include "../../_interp/objects/pool_pages.h"
#include "c_allocator.h"
#include "heap_trimmer.h"

static PyObject *
trim_pools(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    static const char *const results[] = {
        [PLUS_POOL_PAGES_DONE] = "done",
        [PLUS_POOL_PAGES_NO_POOLS] = "no-pools",
        [PLUS_POOL_PAGES_UNREADABLE] = "unreadable",
        [PLUS_POOL_PAGES_LARGE_PAGES] = "large-pages",
        [PLUS_POOL_PAGES_OTHERS] = "sub-interpreter",
    };
    struct plus_pool_pages done;
    enum plus_pool_pages_result result = plus_pool_pages_release(&done);

    return Py_BuildValue("(snn)", results[result], (Py_ssize_t)done.pools, (Py_ssize_t)done.arenas);
}

static PyObject *
trim_c_heap(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    static const char *const names[] = {
        [PLUS_C_ALLOCATOR_GLIBC] = "glibc",       [PLUS_C_ALLOCATOR_JEMALLOC] = "jemalloc",
        [PLUS_C_ALLOCATOR_MIMALLOC] = "mimalloc", [PLUS_C_ALLOCATOR_TCMALLOC] = "tcmalloc",
        [PLUS_C_ALLOCATOR_OTHER] = "other",
    };
    enum plus_c_allocator_kind kind = plus_c_allocator_kind();
    bool told;
    size_t free_bytes;

    Py_BEGIN_ALLOW_THREADS
    told = plus_c_allocator_release(kind);
    free_bytes = plus_c_allocator_free_bytes(kind);
    Py_END_ALLOW_THREADS
    return Py_BuildValue("(sNn)", names[kind], PyBool_FromLong(told), (Py_ssize_t)free_bytes);
}

static PyObject *
trim_regularly(PyObject *Py_UNUSED(module), PyObject *args)
{
    unsigned int interval_ms;
    Py_ssize_t worth_bytes;

    if (!PyArg_ParseTuple(args, "In", &interval_ms, &worth_bytes)) {
        return NULL;
    }
    int result = plus_heap_trimmer_start(interval_ms, (size_t)worth_bytes);
    if (result == -ENOTSUP) {
        Py_RETURN_FALSE;
    }
    if (result < 0) {
        return plus_raise_errno("pthread_create", -result);
    }
    Py_RETURN_TRUE;
}

static PyObject *
trim_pause(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    Py_BEGIN_ALLOW_THREADS
    plus_heap_trimmer_pause();
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

static void
go_on(void)
{
    (void)plus_heap_trimmer_resume(); /* without memory for a thread, there is no trimming */
}

static PyObject *
trim_resume(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    plus_behind_fork(go_on);
    Py_RETURN_NONE;
}

static PyObject *
trim_count(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return PyLong_FromUnsignedLong(plus_heap_trimmer_count());
}

PyMethodDef plus_memory_trim_methods[] = {
    PLUS_METHOD("memory_trim_pools", trim_pools, METH_NOARGS, "$module, /",
                "Give pages of pymalloc's empty pools back.\n\n"
                "Returns ('done' or why not, empty pools, arenas that were unmapped)."),
    PLUS_METHOD(
        "memory_trim_c_heap", trim_c_heap, METH_NOARGS, "$module, /",
        "Have malloc give free memory back.\n\n"
        "Returns (which allocator it is, whether it was told, bytes that stay free in it)."),
    PLUS_METHOD("memory_trim_regularly", trim_regularly, METH_VARARGS,
                "$module, interval_ms, worth_bytes, /",
                "Start the thread that trims glibc's heap; False where malloc is not glibc's."),
    {"memory_trim_pause", trim_pause, METH_NOARGS,
     PyDoc_STR("memory_trim_pause($module, /)\n--\n\nEnd that thread: before a fork.")},
    {"memory_trim_resume", trim_resume, METH_NOARGS,
     PyDoc_STR("memory_trim_resume($module, /)\n--\n\nStart it again after a fork.")},
    {"memory_trim_count", trim_count, METH_NOARGS,
     PyDoc_STR("memory_trim_count($module, /)\n--\n\nHow often that thread has trimmed.")},
    {NULL, NULL, 0, NULL},
};
