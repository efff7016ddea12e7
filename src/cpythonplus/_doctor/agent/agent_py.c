/* The binding of the agent: start, stop, fork hooks, and the answers that Python makes. */
#define _GNU_SOURCE
#include "../binding.h"

#include "../../_base/methods.h"
#include "../../_base/process/behind_fork.h"
#include "../../_base/raise.h"
#include "agent.h"
#include "request.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

/* Copies the answer, so that it can be freed without the GIL. */
static char *
copy_of(PyObject *answer, size_t *length)
{
    char *bytes;
    Py_ssize_t size;

    if (!PyBytes_CheckExact(answer) || PyBytes_AsStringAndSize(answer, &bytes, &size) < 0) {
        return NULL;
    }
    char *copy = malloc((size_t)size + 1);
    if (copy != NULL) {
        memcpy(copy, bytes, (size_t)size);
        *length = (size_t)size;
    }
    return copy;
}

/* Makes an answer of an exception: a module cannot be imported, or there is no memory. */
static char *
failure(size_t *length)
{
    static const char before[] = "{\"error\": \"the process cannot make the answer: ",
                      after[] = "\"}";
    const char *name = ((PyTypeObject *)PyErr_Occurred())->tp_name;
    size_t name_length = strlen(name);

    for (size_t i = 0; i < name_length; i++) {
        if (!Py_ISALNUM(name[i]) && name[i] != '.' && name[i] != '_') {
            return NULL; /* a class made by hand: its name would need escapes in JSON */
        }
    }
    char *text = malloc(sizeof before + name_length + sizeof after);
    if (text != NULL) {
        *length = (size_t)sprintf(text, "%s%s%s", before, name, after);
    }
    return text;
}

static char *
ask_python(const struct plus_request *request, size_t *length, bool *failed)
{
    char *copy = NULL;
    PyObject *result = NULL;
    PyObject *function = plus_import_from("cpythonplus._doctor.agent.answering", "answer");

    if (function != NULL) {
        result = PyObject_CallFunction(function, "ss#", request->name, request->argument,
                                       (Py_ssize_t)request->argument_length);
        Py_DECREF(function);
    }
    if (result != NULL && PyTuple_CheckExact(result) && PyTuple_GET_SIZE(result) == 2) {
        *failed = PyTuple_GET_ITEM(result, 0) != Py_False;
        copy = copy_of(PyTuple_GET_ITEM(result, 1), length);
    }
    Py_XDECREF(result);
    if (copy == NULL && PyErr_Occurred()) {
        *failed = true;
        copy = failure(length);
    }
    PyErr_Clear();
    return copy;
}

/* While an answer is made: whether the program has the collector on; else -1.  Guarded by the GIL. */
static int collects = -1;

/* Called without the GIL, by a thread that is not Python's. */
static char *
answer(const struct plus_request *request, size_t *length, bool *failed)
{
    if (plus_compat_is_finalizing()) {
        return NULL; /* this thread could never get the GIL */
    }
    PyGILState_STATE state = PyGILState_Ensure();
    /* A collection runs finalizers, and some belong to one thread, as those of a user interface.  Collections can
     * wait. */
    collects = PyGC_Disable();
    char *copy = ask_python(request, length, failed);
    if (collects > 0) {
        PyGC_Enable();
    }
    collects = -1;
    PyGILState_Release(state);
    return copy;
}

static PyObject *
start(PyObject *module, PyObject *arg)
{
    int idle_ms = (int)PyLong_AsLong(arg);

    if (idle_ms == -1 && PyErr_Occurred()) {
        return NULL;
    }
    int error = plus_agent_start(answer, idle_ms < 0 ? PLUS_AGENT_FOR_EVER : idle_ms);
    return PyLong_FromLong(-error);
}

PLUS_RETURNS(collector_is_on, PyBool_FromLong(collects >= 0 ? collects : PyGC_IsEnabled()))

#define WAKE_MS 20

/* Waits inside an answer, with the collector as the program has it and the GIL released. */
static PyObject *
wait_ms(PyObject *module, PyObject *arg)
{
    long left = PyLong_AsLong(arg);
    int answering = collects;

    if (left == -1 && PyErr_Occurred()) {
        return NULL;
    }
    collects = -1;
    if (answering > 0) {
        PyGC_Enable();
    }
    Py_BEGIN_ALLOW_THREADS;
    for (; left > 0 && !plus_agent_is_stopping(); left -= WAKE_MS) {
        (void)poll(NULL, 0, left < WAKE_MS ? (int)left : WAKE_MS);
    }
    Py_END_ALLOW_THREADS;
    if (answering >= 0) {
        collects = PyGC_Disable();
    }
    return PyBool_FromLong(answering >= 0 && plus_agent_is_stopping());
}

static PyObject *
without_gil(void (*function)(void))
{
    Py_BEGIN_ALLOW_THREADS;
    function();
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

PLUS_RETURNS(stop, without_gil(plus_agent_stop))

PLUS_RETURNS(before_fork, without_gil(plus_agent_before_fork))

static PyObject *
after_fork_parent(PyObject *module, PyObject *unused)
{
    if (plus_agent_will_go_on()) {
        plus_behind_fork(plus_agent_after_fork_parent);
    }
    else {
        plus_agent_after_fork_parent();
    }
    Py_RETURN_NONE;
}

static PyObject *
after_fork_child(PyObject *module, PyObject *unused)
{
    if (collects > 0) { /* the answer that forked ends in the parent only */
        PyGC_Enable();
    }
    collects = -1;
    plus_agent_after_fork_child();
    Py_RETURN_NONE;
}

PLUS_RETURNS(path, PyUnicode_DecodeFSDefault(plus_agent_path()))

static PyObject *
parse(PyObject *module, PyObject *arg)
{
    char *bytes;
    Py_ssize_t length;
    struct plus_request request;

    if (PyBytes_AsStringAndSize(arg, &bytes, &length) < 0) {
        return NULL;
    }
    enum plus_request_verdict verdict = plus_request_parse(bytes, (size_t)length, &request);
    if (verdict == PLUS_REQUEST_MORE) {
        Py_RETURN_NONE;
    }
    if (verdict != PLUS_REQUEST_WHOLE) {
        PyErr_SetString(PyExc_ValueError, plus_request_reason(verdict));
        return NULL;
    }
    return Py_BuildValue("(ss#n)", request.name, request.argument,
                         (Py_ssize_t)request.argument_length, (Py_ssize_t)request.used);
}

PyMethodDef plus_agent_methods[] = {
    PLUS_METHOD("memory_agent_start", start, METH_O, "$module, idle_ms, /",
                "Open this process's socket and start its thread; returns 0 or an errno.\n\n"
                "idle_ms: without a client for so long it ends by itself; negative: never."),
    PLUS_METHOD("memory_agent_stop", stop, METH_NOARGS, "$module, /",
                "End the thread, when its answer is made, and remove the socket."),
    {"memory_agent_before_fork", before_fork, METH_NOARGS,
     PyDoc_STR("memory_agent_before_fork($module, /)\n--\n\nEnd the threads for a while.")},
    {"memory_agent_after_fork_parent", after_fork_parent, METH_NOARGS,
     PyDoc_STR("memory_agent_after_fork_parent($module, /)\n--\n\nGo on after a fork.")},
    PLUS_METHOD("memory_agent_after_fork_child", after_fork_child, METH_NOARGS, "$module, /",
                "Let go of the parent's socket, and have an own one."),
    PLUS_METHOD("memory_agent_collects", collector_is_on, METH_NOARGS, "$module, /",
                "Return whether the collector is on, but for the agent, which answers without it."),
    PLUS_METHOD("memory_agent_wait", wait_ms, METH_O, "$module, milliseconds, /",
                "Wait in an answer, with the program's collector as it was.\n\n"
                "True: it is to end, since a fork or the end of the process waits."),
    PLUS_METHOD("memory_agent_path", path, METH_NOARGS, "$module, /",
                "Return the path of the socket; empty if there is none."),
    PLUS_METHOD("memory_agent_parse", parse, METH_O, "$module, bytes, /",
                "Return (name, argument, used) of a request, None if it goes on; else ValueError."),
    {NULL, NULL, 0, NULL},
};
