/* The binding of owners: a copy of the process finds them and returns marshalled plain data. */
#include "../binding.h"

#include <marshal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../_base/methods.h"
#include "../../_base/process/clock.h"
#include "../../_heap/heap_copy.h"
#include "../../_heap/heap_walk.h"
#include "../../_heap/keepers.h"
#include "../../_heap/left.h"
#include "../../_interp/facts/facts.h"
#include "../_trim/c_allocator.h"
#include "owner_mark.h"
#include "owners.h"

struct order {
    int before, mark; /* memfds, or -1 */
    uint64_t least;
    bool is_glibc; /* its blocks can be walked */
    size_t pooled;
    const PyTypeObject *asked;
    struct plus_arenas arenas;
};

/* Maps a mark; NULL: there is none. */
static void *
map_mark(int fd, size_t *bytes)
{
    struct stat status;

    if (fd < 0 || fstat(fd, &status) < 0 || status.st_size <= 0) {
        return NULL;
    }
    *bytes = (size_t)status.st_size;
    void *at = mmap(NULL, *bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    return at == MAP_FAILED ? NULL : at;
}

static int
write_mark(const struct plus_reach *owners, int fd)
{
    size_t bytes;
    void *mark = plus_owners_mark(owners, &bytes);

    return mark != NULL ? plus_heap_copy_write(fd, mark, bytes) : -1;
}

/* Runs in the copy of the process. */
static PyObject *
work(void *arg)
{
    const struct order *order = arg;
    struct plus_heap_graph graph;
    struct plus_reach owners;
    size_t before_bytes = 0;
    void *before = map_mark(order->before, &before_bytes);

    if (plus_heap_graph_build(&graph, &order->arenas, order->pooled) < 0 ||
        plus_keepers_connect_subclasses(&graph) < 0 || plus_keepers_find(&graph) < 0 ||
        plus_parts_connect(&graph) < 0 || plus_heap_graph_finish(&graph) < 0 ||
        plus_left_find(&graph, &order->arenas, order->is_glibc) < 0 ||
        plus_reach_find(&owners, &graph, &order->arenas) < 0 ||
        (order->mark >= 0 && write_mark(&owners, order->mark) < 0)) {
        return NULL;
    }
    PyObject *report =
        plus_owners_report(&owners, before, before_bytes, order->least, order->asked);

    return report == NULL ? NULL : PyMarshal_WriteObjectToString(report, Py_MARSHAL_VERSION);
}

/* Finds the arenas that pymalloc has now, or none.  The copy could not find them, because it does not allocate from
 * them.  Returns the time that this took with the GIL held, in ns. */
static uint64_t
find_arenas(struct plus_arenas *arenas)
{
    struct plus_segments segments;
    int status;

    Py_BEGIN_ALLOW_THREADS;
    status = plus_segments_read(&segments);
    Py_END_ALLOW_THREADS;
    uint64_t since = plus_now_ns();
    if (status == 0 && plus_fact_refusal(PLUS_FACT_ARENAS) == NULL) {
        (void)plus_arenas_find(arenas, &segments);
    }
    if (status == 0) {
        plus_segments_free(&segments);
    }
    return plus_now_ns() - since;
}

/* The size of the largest block of Python's own allocator; 0 if objects come from malloc (PYTHONMALLOC=malloc): then they
 * have the functions of the raw domain. */
static size_t
find_pooled(void)
{
    PyMemAllocatorEx raw, objects;

    PyMem_GetAllocator(PYMEM_DOMAIN_RAW, &raw);
    PyMem_GetAllocator(PYMEM_DOMAIN_OBJ, &objects);
    return raw.malloc != objects.malloc ? PLUS_LARGEST_BLOCK : 0;
}

static PyObject *
memory_owners(PyObject *module, PyObject *args)
{
    struct order order = {.mark = -1};
    unsigned long long least, most_bytes;
    int marks, seconds;
    PyObject *asked = NULL;

    if (!PyArg_ParseTuple(args, "iKpiK|O!:memory_owners", &order.before, &least, &marks, &seconds,
                          &most_bytes, &PyType_Type, &asked)) {
        return NULL;
    }
    if (plus_heap_walk_raises()) {
        return NULL;
    }
    (void)plus_fact_refusal(PLUS_FACT_THREAD_STATE); /* the copy cannot prove facts */
    (void)plus_fact_refusal(PLUS_FACT_OPERANDS);
    order.least = least;
    order.is_glibc = plus_c_allocator_kind() == PLUS_C_ALLOCATOR_GLIBC;
    order.pooled = find_pooled();
    order.asked = (PyTypeObject *)asked;
    if (marks) {
        order.mark = memfd_create("cpythonplus-mark", MFD_CLOEXEC);
        if (order.mark < 0) {
            return PyErr_SetFromErrno(PyExc_OSError);
        }
    }
    uint64_t pause_ns = 0, find_ns = find_arenas(&order.arenas);
    const int keep[] = {order.before, order.mark};
    PyObject *data = plus_heap_copy(work, &order, keep, seconds, most_bytes, &pause_ns);

    plus_arenas_free(&order.arenas);
    pause_ns += find_ns;
    PyObject *result = data == NULL
                           ? NULL
                           : Py_BuildValue("(NKi)", data, (unsigned long long)pause_ns, order.mark);

    if (result == NULL && order.mark >= 0) {
        close(order.mark);
    }
    return result;
}

PLUS_RETURNS(memory_malloc_bytes,
             PyLong_FromLongLong(plus_c_allocator_used_bytes(plus_c_allocator_kind())))

PyMethodDef plus_memory_owners_methods[] = {
    PLUS_METHOD("memory_malloc_bytes", memory_malloc_bytes, METH_NOARGS, "$module, /",
                "Return what the C library's malloc has handed out; -1 where that is not known."),
    PLUS_METHOD(
        "memory_owners", memory_owners, METH_VARARGS,
        "$module, before, least, marks, seconds, most_bytes, asked=None, /",
        "Look at a copy of the process; return (marshalled dict, pause in ns, file of a mark).\n"
        "before: the file of an earlier mark, or -1; least: bytes from which on an owner is "
        "told;\n"
        "marks: whether a mark is made (else -1); seconds: how long it may take; most_bytes: the "
        "memory that it may "
        "take;\n"
        "asked: a class that is told in any case, as `asked`.\n\n"
        "The dict has `objects`, `bytes`, `large_bytes` (of malloc's blocks),\n"
        "`small_bytes` (of those in pymalloc's arenas), the same of\n"
        "`before`, `owners`, `classes`, and what is told together: `frames`, `unreached`, "
        "`held`,\n"
        "`left`.  UnsupportedPlatform where it cannot be done; "
        "OSError."),
    {NULL, NULL, 0, NULL},
};
