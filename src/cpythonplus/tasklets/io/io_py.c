/* The functions of cpythonplus.tasklets.io, and the calls of its sockets for each read and write.
 *
 * A call that does not wait keeps the GIL: it takes a few microseconds, less than giving the GIL up and getting it
 * back. Beside a CPU-bound thread, every release would cost that thread's whole turn.
 */
#include "hub.h"

#include "../../_base/methods.h"
#include "../../_base/raise.h"
#include "../scheduling/parking.h"
#include "poller.h"

#include <arpa/inet.h>
#include <limits.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* ---- arguments -------------------------------------------------------------------------------- */

/* Arguments are parsed one by one: PyArg_ParseTuple() took a tenth of a Python server's time for a small request. */
static bool
takes(const char *name, Py_ssize_t given, Py_ssize_t wanted)
{
    if (given != wanted) {
        PyErr_Format(PyExc_TypeError, "%s() takes exactly %zd arguments (%zd given)", name, wanted,
                     given);
    }
    return given == wanted;
}

static bool
take_int(PyObject *arg, int *value)
{
    long number = PyLong_AsLong(arg);

    if (number < INT_MIN || number > INT_MAX) {
        PyErr_SetString(PyExc_OverflowError, "the number does not fit into a C int");
        return false;
    }
    *value = (int)number;
    return number != -1 || !PyErr_Occurred();
}

static bool
take_size(PyObject *arg, Py_ssize_t *value)
{
    *value = PyNumber_AsSsize_t(arg, PyExc_OverflowError);
    return *value != -1 || !PyErr_Occurred();
}

/* A time-out that becomes a deadline when the call first waits. */
struct limit {
    PyObject *timeout;
    uint64_t deadline_ns;
    bool begun;
};

/* Waits for the descriptor.  1: ready; 0: give up, an exception is set. */
static int
await_ready(struct plus_scheduler *sched, int fd, int events, struct limit *limit)
{
    if (!limit->begun && !plus_deadline_from(limit->timeout, &limit->deadline_ns)) {
        return 0;
    }
    limit->begun = true;
    int ready = plus_poller_await(sched, fd, events, limit->deadline_ns, true);

    if (ready == 0) {
        PyErr_SetString(PyExc_TimeoutError, "timed out");
    }
    return ready > 0;
}

/* Flags of calls that never wait, whatever the time-out is. */
#define AT_ONCE (MSG_DONTWAIT | MSG_ERRQUEUE)

static bool
is_zero(PyObject *timeout)
{
    return timeout != Py_None && PyFloat_Check(timeout) && PyFloat_AS_DOUBLE(timeout) == 0.0;
}

static bool
may_wait(int flags, PyObject *timeout)
{
    return !(flags & AT_ONCE) && !is_zero(timeout);
}

/* Decides after a failed call: 1: try again; 0: give up, with an exception. */
static int
after_failure(struct plus_scheduler *sched, int fd, int events, int flags, struct limit *limit)
{
    if (errno == EINTR) {
        return PyErr_CheckSignals() == 0;
    }
    if ((errno == EAGAIN || errno == EWOULDBLOCK) && may_wait(flags, limit->timeout)) {
        return await_ready(sched, fd, events, limit);
    }
    PyErr_SetFromErrno(PyExc_OSError);
    return 0;
}

/* ---- reading and writing ---------------------------------------------------------------------- */

/* Whether MSG_WAITALL applies.  It does not for datagrams, because the sum would exceed their sizes.  With a time-out
 * the standard library's sockets return what has come, too: it would be lost with TimeoutError. */
static bool
takes_all(int fd, int flags, PyObject *timeout)
{
    int type = 0;
    socklen_t bytes = sizeof(type);

    return (flags & MSG_WAITALL) && timeout == Py_None && !(flags & (MSG_DONTWAIT | MSG_PEEK)) &&
           getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) == 0 && type == SOCK_STREAM;
}

/* Returns the number of bytes received, or -1 with an exception. */
static ssize_t
receive(int fd, void *buffer, size_t bytes, int flags, PyObject *timeout)
{
    struct plus_scheduler *sched = plus_scheduler_get();
    struct limit limit = {.timeout = timeout};

    if (sched == NULL) {
        return -1;
    }
    if (bytes == 0) {
        return 0; /* like the standard library's sockets */
    }
    if (flags == 0 && !is_zero(timeout) && plus_poller_is_drained(sched, fd) &&
        !await_ready(sched, fd, PLUS_IO_READ, &limit)) {
        return -1;
    }
    if (flags & MSG_OOB) {
        plus_poller_note_urgent(fd);
    }
    size_t all = 0; /* exceeds one read only with MSG_WAITALL */

    for (;;) {
        if (may_wait(flags, timeout) && plus_give_way(sched) < 0) {
            return -1;
        }
        ssize_t got = recv(fd, (char *)buffer + all, bytes - all, flags | MSG_DONTWAIT);

        if (got >= 0) {
            all += (size_t)got;
            if (got == 0 || all >= bytes || !takes_all(fd, flags, timeout)) {
                return (ssize_t)all;
            }
        }
        else if (!after_failure(sched, fd, PLUS_IO_READ, flags, &limit)) {
            return -1;
        }
    }
}

/* On a stream, a read of less than was asked for means that there is no more now (epoll(7)). */
static void
note_drained(int fd, ssize_t got, size_t bytes, int flags, int stream)
{
    if (stream && got > 0 && (size_t)got < bytes && flags == 0 && plus_scheduler_own != NULL) {
        plus_poller_set_drained(plus_scheduler_own, fd);
    }
}

/* Most reads return less than was asked for: reading here and copying to an object of the right size costs less than
 * making an object too large and shrinking it.  Calls with several reads do not use this buffer: other tasklets run in
 * between, and would overwrite it. */
static char scratch[8192];

static PyObject *
io_recv(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    int fd, flags, stream;
    Py_ssize_t bytes;

    if (!takes("io_recv", nargs, 5) || !take_int(args[0], &fd) || !take_size(args[1], &bytes) ||
        !take_int(args[2], &flags) || (stream = PyObject_IsTrue(args[4])) < 0) {
        return NULL;
    }
    if (bytes < 0) {
        PyErr_SetString(PyExc_ValueError, "negative buffersize in recv");
        return NULL;
    }
    bool brief = bytes <= (Py_ssize_t)sizeof(scratch) && !(flags & MSG_WAITALL);
    PyObject *result = brief ? NULL : PyBytes_FromStringAndSize(NULL, bytes);

    if (!brief && result == NULL) {
        return NULL;
    }
    char *buffer = brief ? scratch : PyBytes_AS_STRING(result);
    ssize_t got = receive(fd, buffer, (size_t)bytes, flags, args[3]);

    if (got < 0) {
        Py_XDECREF(result);
        return NULL;
    }
    note_drained(fd, got, (size_t)bytes, flags, stream);
    if (brief) {
        return PyBytes_FromStringAndSize(scratch, got < bytes ? got : bytes);
    }
    if (got < bytes) {
        (void)_PyBytes_Resize(&result, got);
    }
    return result;
}

static PyObject *
io_recv_into(PyObject *module, PyObject *args)
{
    int fd, flags, stream;
    Py_ssize_t bytes;
    Py_buffer buffer;
    PyObject *timeout;

    if (!PyArg_ParseTuple(args, "iw*niOp:io_recv_into", &fd, &buffer, &bytes, &flags, &timeout,
                          &stream)) {
        return NULL;
    }
    PyObject *result = NULL;

    if (bytes < 0) {
        PyErr_SetString(PyExc_ValueError, "negative buffersize in recv_into");
    }
    else if (bytes > buffer.len) {
        PyErr_SetString(PyExc_ValueError, "buffer too small for requested bytes");
    }
    else {
        size_t wanted = (size_t)(bytes != 0 ? bytes : buffer.len);
        ssize_t got = receive(fd, buffer.buf, wanted, flags, timeout);

        if (got >= 0) {
            note_drained(fd, got, wanted, flags, stream);
            result = PyLong_FromSsize_t(got);
        }
    }
    PyBuffer_Release(&buffer);
    return result;
}

/* Sends once, or until all is sent.  Returns the number of bytes sent, or -1 with an exception. */
static ssize_t
transmit(int fd, const char *data, size_t bytes, int flags, PyObject *timeout, bool all)
{
    struct plus_scheduler *sched = plus_scheduler_get();
    struct limit limit = {.timeout = timeout};
    size_t sent = 0;

    if (sched == NULL) {
        return -1;
    }
    do {
        if (may_wait(flags, timeout) && plus_give_way(sched) < 0) {
            return -1;
        }
        ssize_t put = send(fd, data + sent, bytes - sent, flags | MSG_DONTWAIT | MSG_NOSIGNAL);

        if (put >= 0) {
            sent += (size_t)put;
            if (!all) {
                break;
            }
        }
        else if (!after_failure(sched, fd, PLUS_IO_WRITE, flags, &limit)) {
            return -1;
        }
    } while (sent < bytes || (!all && sent == 0 && bytes == 0));
    return (ssize_t)sent;
}

static PyObject *
send_with(const char *name, PyObject *const *args, Py_ssize_t nargs, bool all)
{
    int fd, flags;
    Py_buffer data;

    if (!takes(name, nargs, 4) || !take_int(args[0], &fd) || !take_int(args[2], &flags) ||
        PyObject_GetBuffer(args[1], &data, PyBUF_SIMPLE) < 0) {
        return NULL;
    }
    ssize_t sent = transmit(fd, data.buf, (size_t)data.len, flags, args[3], all);

    PyBuffer_Release(&data);
    if (sent < 0) {
        return NULL;
    }
    return all ? Py_NewRef(Py_None) : PyLong_FromSsize_t(sent);
}

static PyObject *
io_send(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    return send_with("io_send", args, nargs, false);
}

static PyObject *
io_sendall(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    return send_with("io_sendall", args, nargs, true);
}

/* ---- accepting -------------------------------------------------------------------------------- */

/* Returns the standard library's form of the address; None for families that are left to the library. */
static PyObject *
address_of(const struct sockaddr_storage *address, socklen_t bytes)
{
    char text[INET6_ADDRSTRLEN];

    if (address->ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)address;

        inet_ntop(AF_INET, &in->sin_addr, text, sizeof(text));
        return Py_BuildValue("(si)", text, ntohs(in->sin_port));
    }
    if (address->ss_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)address;

        inet_ntop(AF_INET6, &in6->sin6_addr, text, sizeof(text));
        return Py_BuildValue("(siII)", text, ntohs(in6->sin6_port), ntohl(in6->sin6_flowinfo),
                             in6->sin6_scope_id);
    }
    if (address->ss_family == AF_UNIX) {
        const struct sockaddr_un *un = (const struct sockaddr_un *)address;
        size_t path_bytes = bytes - offsetof(struct sockaddr_un, sun_path);

        if (path_bytes > 0 && un->sun_path[0] == '\0') { /* abstract */
            return PyBytes_FromStringAndSize(un->sun_path, (Py_ssize_t)path_bytes);
        }
        return PyUnicode_DecodeFSDefault(un->sun_path);
    }
    return Py_NewRef(Py_None);
}

static PyObject *
io_accept(PyObject *module, PyObject *args)
{
    struct plus_scheduler *sched = plus_scheduler_get();
    struct sockaddr_storage address;
    struct limit limit = {0};
    int fd, got;

    if (sched == NULL || !PyArg_ParseTuple(args, "iO:io_accept", &fd, &limit.timeout)) {
        return NULL;
    }
    for (;;) {
        socklen_t bytes = sizeof(address);

        if (may_wait(0, limit.timeout) && plus_give_way(sched) < 0) {
            return NULL;
        }
        memset(&address, 0, sizeof(address));
        got = accept4(fd, (struct sockaddr *)&address, &bytes, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (got >= 0) {
            PyObject *from = address_of(&address, bytes);

            if (from == NULL) {
                close(got);
                return NULL;
            }
            return Py_BuildValue("(iN)", got, from);
        }
        if (!after_failure(sched, fd, PLUS_IO_READ, 0, &limit)) {
            return NULL;
        }
    }
}

/* ---- waiting ---------------------------------------------------------------------------------- */

static PyObject *
io_sleep(PyObject *module, PyObject *delay)
{
    struct plus_scheduler *sched = plus_scheduler_get();
    uint64_t deadline_ns;
    double seconds = PyFloat_AsDouble(delay);

    if (sched == NULL || (seconds == -1.0 && PyErr_Occurred())) {
        return NULL;
    }
    if (seconds < 0) {
        PyErr_SetString(PyExc_ValueError, "sleep length must be non-negative");
        return NULL;
    }
    if (!plus_deadline_after(seconds, &deadline_ns) || plus_sleep_until(sched, deadline_ns) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *
io_wait(PyObject *module, PyObject *args)
{
    struct plus_scheduler *sched = plus_scheduler_get();
    int fd, events, stays;
    PyObject *timeout;
    uint64_t deadline_ns;

    if (sched == NULL || !PyArg_ParseTuple(args, "iiOp:io_wait", &fd, &events, &timeout, &stays)) {
        return NULL;
    }
    if (events == 0 || (events & ~(PLUS_IO_READ | PLUS_IO_WRITE)) != 0) {
        PyErr_SetString(PyExc_ValueError, "events must be IO_READ, IO_WRITE or both");
        return NULL;
    }
    if (!plus_deadline_from(timeout, &deadline_ns)) {
        return NULL;
    }
    int ready = plus_poller_await(sched, fd, events, deadline_ns, stays != 0);

    if (ready == 0) {
        PyErr_SetString(PyExc_TimeoutError, "timed out");
    }
    return ready > 0 ? PyLong_FromLong(ready) : NULL;
}

static PyObject *
io_give_way(PyObject *module, PyObject *ignored)
{
    struct plus_scheduler *sched = plus_scheduler_get();

    return sched != NULL && plus_give_way(sched) == 0 ? Py_NewRef(Py_None) : NULL;
}

static PyObject *
io_forget(PyObject *module, PyObject *arg)
{
    int fd = PyObject_AsFileDescriptor(arg);

    if (fd < 0) {
        return NULL;
    }
    plus_poller_forget(fd);
    Py_RETURN_NONE;
}

/* ---- the event loop --------------------------------------------------------------------------- */

static PyObject *
io_poller(PyObject *module, PyObject *ignored)
{
    struct plus_scheduler *sched = plus_scheduler_get();
    struct plus_poller *poller = sched != NULL ? plus_poller_get(sched) : NULL;

    return poller != NULL ? PyLong_FromLong(plus_poller_descriptor(poller)) : NULL;
}

/* Called with (ours, outside): a list of the running loop and the hooks as the tasklets see them. */
static PyObject *
io_turn(PyObject *module, PyObject *args)
{
    struct plus_scheduler *sched = plus_scheduler_get();
    PyObject *ours, *outside;

    if (sched == NULL || !PyArg_ParseTuple(args, "OO!:io_turn", &ours, &PyList_Type, &outside)) {
        return NULL;
    }
    PyObject *seen = PyList_AsTuple(outside);
    PyObject *inside = seen != NULL ? plus_running_loop() : NULL;

    if (inside == NULL) {
        Py_XDECREF(seen);
        return NULL;
    }
    plus_set_running_loop(seen);
    Py_DECREF(seen);
    int again = plus_hub_turn(sched, ours == Py_True);
    struct plus_raised raised = plus_raised_take();

    seen = plus_running_loop();
    if (seen == NULL) {
        PyErr_WriteUnraisable(outside);
    }
    plus_set_running_loop(inside);
    Py_DECREF(inside);
    if (seen != NULL && PyList_SetSlice(outside, 0, PyList_GET_SIZE(outside), seen) < 0) {
        PyErr_WriteUnraisable(outside);
    }
    Py_XDECREF(seen);
    plus_raised_put(raised);
    return again < 0 ? NULL : PyBool_FromLong(again);
}

/* A signal handler's exception may leave Python code at any of its instructions; only C code here can still react. */
static PyObject *
io_guard_turns(PyObject *module, PyObject *function)
{
    PyObject *result = PyObject_CallNoArgs(function);

    if (result == NULL && plus_scheduler_own != NULL) {
        plus_hub_owe(plus_scheduler_own);
    }
    return result;
}

/* Python code cannot make the argument of sys.unraisablehook. */
static PyObject *
io_unraisable(PyObject *module, PyObject *args)
{
    PyObject *exception, *place;

    if (!PyArg_ParseTuple(args, "O!O:io_unraisable", PyExc_BaseException, &exception, &place)) {
        return NULL;
    }
    PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
    PyErr_WriteUnraisable(place);
    Py_RETURN_NONE;
}

#define METHOD(name, ...) PLUS_METHOD(#name, name, __VA_ARGS__)
#define METHOD_KW(name, ...) PLUS_METHOD_KW(#name, name, __VA_ARGS__)

PyMethodDef plus_io_methods[] = {
    METHOD_KW(io_recv, METH_FASTCALL, "$module, fd, bytes, flags, timeout, stream, /",
              "recv(2) on a socket of ours; only the tasklet waits."),
    METHOD(io_recv_into, METH_VARARGS, "$module, fd, buffer, bytes, flags, timeout, stream, /",
           "The same into a buffer; bytes 0: all of it."),
    METHOD_KW(io_send, METH_FASTCALL, "$module, fd, data, flags, timeout, /",
              "send(2); returns how many bytes were taken."),
    METHOD_KW(io_sendall, METH_FASTCALL, "$module, fd, data, flags, timeout, /", "All of it."),
    METHOD(io_accept, METH_VARARGS, "$module, fd, timeout, /",
           "accept4(2); returns a descriptor that does not block, and the peer's address: None "
           "but for AF_INET, AF_INET6 and AF_UNIX."),
    METHOD(io_sleep, METH_O, "$module, seconds, /",
           "Block the tasklet for so long; 0 lets others run."),
    METHOD(io_wait, METH_VARARGS, "$module, fd, events, timeout, stays, /",
           "Block the tasklet until a descriptor is ready; return for what.\n\n"
           "TimeoutError; OSError(EBADF) when it was forgotten meanwhile."),
    METHOD(io_give_way, METH_NOARGS, "$module, /",
           "Before a call that may find its descriptor ready each time: let others run now and "
           "then."),
    METHOD(io_forget, METH_O, "$module, fd, /",
           "To be called before a descriptor that stays registered is closed."),
    METHOD(io_unraisable, METH_VARARGS, "$module, exception, place, /",
           "Give an exception that no code handles to sys.unraisablehook."),
    METHOD(io_poller, METH_NOARGS, "$module, /", "The descriptor that an event loop is to watch."),
    METHOD(io_turn, METH_VARARGS, "$module, ours, outside, /",
           "Run the other tasklets; True: call it again soon, False: when that descriptor is "
           "ready."),
    METHOD(io_guard_turns, METH_O, "$module, function, /",
           "Call it; if it raises, that descriptor is ready, so that no turn is lost."),
    {NULL, NULL, 0, NULL},
};
