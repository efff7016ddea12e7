/* Lets calls of the extension fail for want of memory: those that it makes itself, one after the other.
 *
 * Why not _testcapi.set_nomemory(): it fails allocations of the interpreter too, which has defects of its own there, so
 * that a crash says nothing; and how many it makes differs from build to build.  Here the words through which the one
 * object calls others lead to stubs (gil/scheduler/slots.h), which count, and either jump to where the call was going or return as
 * the function does when there is no memory.
 *
 *     the extension          call *slot
 *     stub_3                 push 3, jmp common
 *     common                 save the arguments, decide(3), put them back
 *                              jump to the real function, as if nothing had been   or   return NULL, -1, ... */
#define _GNU_SOURCE
#include <Python.h>

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

#include "gil/scheduler/slots.h"

/* Returns: R(NULL with MemoryError), I(-1 with MemoryError), N(NULL), C(NULL, an exception cleared), E(-1 and errno),
 * T(an error number). */
#define FUNCTIONS(F)                                                                               \
    F(PyBytes_FromString, R)                                                                       \
    F(PyBytes_FromStringAndSize, R)                                                                \
    F(PyCMethod_New, R)                                                                            \
    F(PyCapsule_New, R)                                                                            \
    F(PyContext_CopyCurrent, R)                                                                    \
    F(PyContext_Enter, I)                                                                          \
    F(PyContext_New, R)                                                                            \
    F(PyDict_Copy, R)                                                                              \
    F(PyDict_Keys, R)                                                                              \
    F(PyDict_New, R)                                                                               \
    F(PyDict_SetItem, I)                                                                           \
    F(PyDict_SetItemString, I)                                                                     \
    F(PyDict_Update, I)                                                                            \
    F(PyFloat_FromDouble, R)                                                                       \
    F(PyFrame_New, R)                                                                              \
    F(PyImport_ImportModule, R)                                                                    \
    F(PyList_Append, I)                                                                            \
    F(PyList_AsTuple, R)                                                                           \
    F(PyList_GetSlice, R)                                                                          \
    F(PyList_New, R)                                                                               \
    F(PyList_SetSlice, I)                                                                          \
    F(PyLong_FromLong, R)                                                                          \
    F(PyLong_FromSize_t, R)                                                                        \
    F(PyLong_FromSsize_t, R)                                                                       \
    F(PyLong_FromUnsignedLong, R)                                                                  \
    F(PyLong_FromUnsignedLongLong, R)                                                              \
    F(PyLong_FromVoidPtr, R)                                                                       \
    F(PyMethod_New, R)                                                                             \
    F(PyObject_Call, R)                                                                            \
    F(PyObject_CallFunction, R)                                                                    \
    F(PyObject_CallFunctionObjArgs, R)                                                             \
    F(PyObject_CallMethod, R)                                                                      \
    F(PyObject_CallNoArgs, R)                                                                      \
    F(PyObject_CallObject, R)                                                                      \
    F(PyObject_CallOneArg, R)                                                                      \
    F(PyObject_GetAttr, R)                                                                         \
    F(PyObject_GetAttrString, R)                                                                   \
    F(PyObject_GetIter, R)                                                                         \
    F(PyObject_Repr, R)                                                                            \
    F(PyObject_SetAttr, I)                                                                         \
    F(PyObject_SetAttrString, I)                                                                   \
    F(PyObject_Str, R)                                                                             \
    F(PyObject_Vectorcall, R)                                                                      \
    F(PySequence_Concat, R)                                                                        \
    F(PySequence_List, R)                                                                          \
    F(PySet_Add, I)                                                                                \
    F(PySet_New, R)                                                                                \
    F(PyEval_GetFrame, C)                                                                          \
    F(PyThreadState_New, N)                                                                        \
    F(PyTuple_GetSlice, R)                                                                         \
    F(PyTuple_New, R)                                                                              \
    F(PyType_GenericAlloc, R)                                                                      \
    F(PyUnicode_AsUTF8, R)                                                                         \
    F(PyUnicode_DecodeFSDefault, R)                                                                \
    F(PyUnicode_DecodeLatin1, R)                                                                   \
    F(PyUnicode_FromFormat, R)                                                                     \
    F(PyUnicode_FromString, R)                                                                     \
    F(PyUnicode_InternFromString, R)                                                               \
    F(PyVectorcall_Call, R)                                                                        \
    F(PyWeakref_NewRef, R)                                                                         \
    F(Py_BuildValue, R)                                                                            \
    F(Py_GenericAlias, R)                                                                          \
    F(_PyObject_CallFunction_SizeT, R)                                                             \
    F(_PyObject_CallMethod_SizeT, R)                                                               \
    F(_PyObject_GC_New, R)                                                                         \
    F(_PyObject_New, R)                                                                            \
    F(_Py_BuildValue_SizeT, R)                                                                     \
    F(PyMem_Calloc, N)                                                                             \
    F(PyMem_Malloc, N)                                                                             \
    F(PyMem_RawCalloc, N)                                                                          \
    F(PyMem_RawMalloc, N)                                                                          \
    F(PyMem_RawRealloc, N)                                                                         \
    F(PyObject_Malloc, N)                                                                          \
    F(calloc, N)                                                                                   \
    F(malloc, N)                                                                                   \
    F(realloc, N)                                                                                  \
    F(fopencookie, N)                                                                              \
    F(opendir, N)                                                                                  \
    F(mmap, E)                                                                                     \
    F(mmap64, E)                                                                                   \
    F(mprotect, E)                                                                                 \
    F(epoll_create1, E)                                                                            \
    F(epoll_ctl, E)                                                                                \
    F(eventfd, E)                                                                                  \
    F(timerfd_create, E)                                                                           \
    F(fork, E)                                                                                     \
    F(pthread_create, T)

enum kind { R, I, N, C, E, T };

#define ROW(name, kind) {#name, kind},
static struct {
    const char *symbol;
    enum kind kind;
} functions[] = {FUNCTIONS(ROW)};

#define COUNT (sizeof functions / sizeof functions[0])

/* Not for ever: what is tried until there is memory gets it then. */
#define LASTING 100

/* Written by the thread that calls failing_begin(), which is the only one whose calls count: not those of a copy of the
 * process, for whatever fails there, the copy fails, and nothing behind it would ever do so. */
static struct {
    pthread_t thread;
    pid_t process;
    bool on, all;
    long calls, from;
    const char *failed; /* the first that did */
} state;

static uintptr_t originals[COUNT];

struct decision {
    uintptr_t target; /* 0: fail */
    intptr_t result;
};

static struct decision
fail(enum kind kind)
{
    intptr_t result = kind == I || kind == E ? -1 : 0;

    if (kind == T) {
        return (struct decision){0, EAGAIN};
    }
    if (kind == R || kind == I) {
        state.on = false;
        PyErr_NoMemory();
        state.on = true;
    }
    if (kind == C) {
        PyErr_Clear();
    }
    errno = ENOMEM;
    return (struct decision){0, result};
}

__attribute__((used)) static struct decision
decide(long index)
{
    struct decision go_on = {originals[index], 0};

    if (!state.on || !pthread_equal(state.thread, pthread_self()) || state.process != getpid()) {
        return go_on;
    }
    long call = state.calls++;
    if (call < state.from || call >= state.from + (state.all ? LASTING : 1)) {
        return go_on;
    }
    if (state.failed == NULL) {
        state.failed = functions[index].symbol;
    }
    return fail(functions[index].kind);
}

/* All that may hold arguments, the doubles of variadic functions too, and %rax, which tells how many of these there are. */
__asm__(".text\n"
        "common:\n"
        "    push %rdi\n    push %rsi\n    push %rdx\n    push %rcx\n"
        "    push %r8\n    push %r9\n    push %rax\n"
        "    sub $136, %rsp\n"
        "    movups %xmm0, (%rsp)\n    movups %xmm1, 16(%rsp)\n"
        "    movups %xmm2, 32(%rsp)\n    movups %xmm3, 48(%rsp)\n"
        "    movups %xmm4, 64(%rsp)\n    movups %xmm5, 80(%rsp)\n"
        "    movups %xmm6, 96(%rsp)\n    movups %xmm7, 112(%rsp)\n"
        "    mov 192(%rsp), %rdi\n" /* what the stub has pushed */
        "    call decide\n"
        "    mov %rax, %r11\n    mov %rdx, %r10\n"
        "    movups (%rsp), %xmm0\n    movups 16(%rsp), %xmm1\n"
        "    movups 32(%rsp), %xmm2\n    movups 48(%rsp), %xmm3\n"
        "    movups 64(%rsp), %xmm4\n    movups 80(%rsp), %xmm5\n"
        "    movups 96(%rsp), %xmm6\n    movups 112(%rsp), %xmm7\n"
        "    add $136, %rsp\n"
        "    pop %rax\n    pop %r9\n    pop %r8\n"
        "    pop %rcx\n    pop %rdx\n    pop %rsi\n    pop %rdi\n"
        "    add $8, %rsp\n"
        "    test %r11, %r11\n    jz 1f\n    jmp *%r11\n"
        "1:  mov %r10, %rax\n    ret\n"
        /* One after the other, 16 bytes each. */
        "    .balign 16\n"
        "stubs:\n"
        "    .set number, 0\n"
        "    .rept 128\n"
        "    .balign 16\n"
        "    push $number\n"
        "    jmp common\n"
        "    .set number, number + 1\n"
        "    .endr\n");

extern const char stubs[] __attribute__((visibility("hidden")));

static uintptr_t
stub_of(size_t index)
{
    return (uintptr_t)stubs + 16 * index;
}

/* Leads the calls of the object with the code `inside` through here; how many of the functions it calls. */
__attribute__((visibility("default"))) int
failing_install(const void *inside)
{
    int found = 0;

    for (size_t i = 0; i < COUNT; i++) {
        struct plus_slot_set set = {.symbol = functions[i].symbol};

        if (plus_slots_find(inside, &set) < 0) {
            continue;
        }
        originals[i] = *set.addresses[0];
        if (plus_slots_write(&set, stub_of(i)) < 0) {
            return -1;
        }
        found++;
    }
    return found;
}

/* Objects of a class of the extension are made through a word of the class. */
__attribute__((visibility("default"))) void
failing_type(PyObject *op)
{
    PyTypeObject *type = (PyTypeObject *)op;

    for (size_t i = 0; type->tp_alloc == PyType_GenericAlloc && i < COUNT; i++) {
        if (strcmp(functions[i].symbol, "PyType_GenericAlloc") == 0) {
            originals[i] = (uintptr_t)PyType_GenericAlloc;
            type->tp_alloc = (allocfunc)stub_of(i);
        }
    }
}

/* `from`: the number of the call that fails, 0 for the first one; `all`: LASTING ones from there on. */
__attribute__((visibility("default"))) void
failing_begin(long from, int all)
{
    state.thread = pthread_self();
    state.process = getpid();
    state.calls = 0;
    state.from = from;
    state.all = all != 0;
    state.failed = NULL;
    state.on = true;
}

/* How many calls there were. */
__attribute__((visibility("default"))) long
failing_end(void)
{
    state.on = false;
    return state.calls;
}

__attribute__((visibility("default"))) const char *
failing_first(void)
{
    return state.failed;
}
