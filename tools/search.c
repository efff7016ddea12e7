/* What tools/search.py cannot do in Python: allocations that fail, and a signal at every n-th bytecode.
 *
 * Why not _testcapi.set_nomemory(): it does not count, and it fails the allocations of other threads too. */
#define _GNU_SOURCE
#include <Python.h>

#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))

/* ---- allocations: those of one thread count, and of these the numbers first .. last fail -------------------- */

static PyMemAllocatorEx real[3]; /* by domain: raw, mem, object */
static pthread_t thread;
static long calls, first, last;

/* Who asked for what failed: the extension, by a call into the interpreter or the C library; or the interpreter by
 * itself.  Shared with a child that is to fail.  `at`: the call, to see whether the child crashed in that very one. */
static struct {
    long by_extension, by_interpreter, in_same_call;
    const void *at;
} *asked;
static const void *extension;

/* Functions of the interpreter that make and clear the frames of Python code, as ranges of addresses. */
static struct range {
    const char *from, *to;
} frame_code[8];
static int ranges;

API void
frames_are_made_in(const char *from, const char *to)
{
    if (ranges < 8) {
        frame_code[ranges++] = (struct range){from, to};
    }
}

static bool
makes_frames(const char *address)
{
    for (int i = 0; i < ranges; i++) {
        if (address >= frame_code[i].from && address < frame_code[i].to) {
            return true;
        }
    }
    return false;
}

/* The address to which the call of the extension returns in which its thread is; NULL: Python code comes before. */
static const void *
call_of_extension(void)
{
    void *frames[64];
    int count = backtrace(frames, 64);

    for (int i = 0; i < count; i++) {
        Dl_info info;

        if (makes_frames(frames[i])) {
            break;
        }
        if (dladdr(frames[i], &info) == 0) {
            continue;
        }
        if (info.dli_fbase == extension) {
            return frames[i];
        }
        if (info.dli_sname != NULL && strcmp(info.dli_sname, "_PyEval_EvalFrameDefault") == 0) {
            break;
        }
    }
    return NULL;
}

static bool
fails(void)
{
    if (!pthread_equal(thread, pthread_self())) {
        return false;
    }
    long call = calls++;
    if (call < first || call > last) {
        return false;
    }
    asked->at = call_of_extension();
    if (asked->at != NULL) {
        asked->by_extension++;
    }
    else {
        asked->by_interpreter++;
    }
    return true;
}

API void
memory_asked_none(void)
{
    memset(asked, 0, sizeof *asked);
}

/* Whether a crash since then can be the extension's: the interpreter has defects of its own without memory. */
API int
memory_asked_by_extension_alone(void)
{
    return asked->by_extension > 0 && asked->by_interpreter == 0 && asked->in_same_call == 0;
}

static void *
no_malloc(void *domain, size_t size)
{
    PyMemAllocatorEx *to = domain;
    return fails() ? NULL : to->malloc(to->ctx, size);
}

static void *
no_calloc(void *domain, size_t count, size_t size)
{
    PyMemAllocatorEx *to = domain;
    return fails() ? NULL : to->calloc(to->ctx, count, size);
}

static void *
no_realloc(void *domain, void *block, size_t size)
{
    PyMemAllocatorEx *to = domain;
    return fails() ? NULL : to->realloc(to->ctx, block, size);
}

static void
give_back(void *domain, void *block)
{
    PyMemAllocatorEx *to = domain;
    to->free(to->ctx, block);
}

/* The allocations number from .. to of this thread fail, counted from 0. */
API void
memory_begin(long from, long to)
{
    thread = pthread_self();
    calls = 0;
    first = from;
    last = to;
    for (int domain = 0; domain < 3; domain++) {
        PyMem_GetAllocator((PyMemAllocatorDomain)domain, &real[domain]);
        PyMemAllocatorEx hook = {&real[domain], no_malloc, no_calloc, no_realloc, give_back};
        PyMem_SetAllocator((PyMemAllocatorDomain)domain, &hook);
    }
}

/* How many allocations there were. */
API long
memory_end(void)
{
    for (int domain = 0; domain < 3; domain++) {
        PyMem_SetAllocator((PyMemAllocatorDomain)domain, &real[domain]);
    }
    return calls;
}

/* ---- bytecodes: the handler of a signal is due after every n-th one ------------------------------------------ */

static long every, left;
static int number;

/* Lines, what they call of their room, and the package; not the handler of the signal itself. */
static bool
is_searched(PyCodeObject *code)
{
    const char *name = PyUnicode_AsUTF8(code->co_filename);

    return name != NULL &&
           (strncmp(name, "<line", 5) == 0 || strstr(name, "/site-packages/cpythonplus/") != NULL);
}

static void
count_bytecode(void)
{
    if (--left <= 0) {
        left = every;
        PyErr_SetInterruptEx(number);
    }
}

#if PY_VERSION_HEX >= 0x030C0000

/* Not a trace function: 3.12 calls one that is switched off, a null pointer, at the next bytecode of a frame with
 * f_trace_opcodes while another thread, or a parked tasklet, traces.  3.13 looks (gh-103615). */
static PyObject *
step(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)self;
    (void)count;
    if (pthread_equal(thread, pthread_self()) && is_searched((PyCodeObject *)args[0])) {
        count_bytecode();
    }
    Py_RETURN_NONE;
}

/* Returns the callback for sys.monitoring's event INSTRUCTION, or NULL with an exception. */
API PyObject *
signals_callback(void)
{
    static PyMethodDef def = {"step", (PyCFunction)(void (*)(void))step, METH_FASTCALL, NULL};

    return PyCFunction_New(&def, NULL);
}

#define TRACE(function) ((void)0)

#else

static int
step(PyObject *self, PyFrameObject *frame, int what, PyObject *arg)
{
    (void)self;
    (void)arg;
    if (what == PyTrace_CALL) {
        PyCodeObject *code = PyFrame_GetCode(frame);
        bool wanted = is_searched(code);

        Py_DECREF(code);
        if (!wanted) {
            return 0;
        }
        if (PyObject_SetAttrString((PyObject *)frame, "f_trace", Py_True) < 0 ||
            PyObject_SetAttrString((PyObject *)frame, "f_trace_lines", Py_False) < 0) {
            return -1;
        }
        return PyObject_SetAttrString((PyObject *)frame, "f_trace_opcodes", Py_True);
    }
    if (what == PyTrace_OPCODE) {
        count_bytecode();
    }
    return 0;
}

#define TRACE(function) PyEval_SetTrace(function, NULL)

#endif

/* From now on in this thread; from 3.12 on, while the event INSTRUCTION is on. */
API void
signals_begin(long each, int signal_number)
{
    thread = pthread_self();
    every = left = each;
    number = signal_number;
    TRACE(step);
}

API void
signals_end(void)
{
    TRACE(NULL);
}

/* ---- crashes: the functions that a thread was in --------------------------------------------------------------- */

static void
tell(int signal_number)
{
    void *frames[40];

    backtrace_symbols_fd(frames, backtrace(frames, 40), STDERR_FILENO);
    if (asked->at != NULL && call_of_extension() == asked->at) {
        asked->in_same_call = 1;
    }
    raise(signal_number);
}

/* inside: an address of the extension. */
API void
crashes_are_of(const void *inside)
{
    Dl_info info;

    extension = dladdr(inside, &info) ? info.dli_fbase : NULL;
    asked = mmap(NULL, sizeof *asked, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

/* To be called before faulthandler.enable(), which hands on to whatever was there. */
API void
crashes_tell(void)
{
    void *loads_what_it_needs[1];
    static const int numbers[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};
    struct sigaction action = {.sa_handler = tell,
                               .sa_flags = (int)(SA_RESETHAND | SA_NODEFER | SA_ONSTACK)};

    backtrace(loads_what_it_needs, 1);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        sigaction(numbers[i], &action, NULL);
    }
}
