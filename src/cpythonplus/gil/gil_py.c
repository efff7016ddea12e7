#include "binding.h" /* Python.h first: it sets the feature macros */

#include "../_base/memory/page.h"
#include "../_base/methods.h"
#include "../_base/process/clock.h"
#include "../_base/raise.h"
#include "../_base/rows.h"
#include "control.h"
#include "rehearsal.h"
#include "scheduler/sched.h"

#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

static PyObject *
gil_start(PyObject *module, PyObject *args)
{
    unsigned long long slice_us, spin_us;
    double share;
    int eager;
    char reason[PLUS_REASON_SIZE];

    if (!PyArg_ParseTuple(args, "KdKp:gil_start", &slice_us, &share, &spin_us, &eager)) {
        return NULL;
    }
    struct plus_policy policy = {
        .slice_ns = slice_us * PLUS_NS_PER_US,
        .spin_ns = spin_us * PLUS_NS_PER_US,
        .batch_share = share,
        .eager = eager != 0,
    };
    if (plus_control_run(&policy, reason) < 0) {
        return plus_raise_unsupported(reason);
    }
    Py_RETURN_NONE;
}

/* Runs in the child: the Python half installs and proves; the text of its exception is the reason. */
static int
call_rehearsal(void *argument, char *reason)
{
    PyObject *done = PyObject_CallNoArgs(argument);

    if (done != NULL) {
        Py_DECREF(done);
        return 0;
    }
    PyObject *exception = plus_compat_take_exception();
    PyObject *text = exception != NULL ? PyObject_Str(exception) : NULL;
    const char *message = text != NULL ? PyUnicode_AsUTF8(text) : NULL;
    snprintf(reason, PLUS_REASON_SIZE, "%s", message != NULL ? message : "unknown");
    return -1; /* nothing is released: the process exits now */
}

/* Returns True if it installed as rehearsed.  Returns False without a rehearsal: it was useless or fork failed. */
static PyObject *
gil_rehearse(PyObject *module, PyObject *callable)
{
    char reason[PLUS_REASON_SIZE];

    if (!plus_rehearsal_useful()) {
        Py_RETURN_FALSE;
    }
    int rc = plus_rehearsal_run(call_rehearsal, callable, reason);
    if (rc < 0) {
        return plus_raise_unsupported(reason);
    }
    return PyBool_FromLong(rc == 0);
}

PLUS_DOES(gil_stop, plus_control_stop())

static PyObject *
gil_prove(PyObject *module, PyObject *args)
{
    int rc = plus_control_prove();

    if (rc < 0) {
        return plus_raise_errno("pthread_create", -rc);
    }
    Py_RETURN_NONE;
}

PLUS_RETURNS(gil_proven, PyBool_FromLong(plus_control_proven()))
PLUS_RETURNS(gil_active, PyBool_FromLong(plus_hooks_level() == PLUS_HOOKS_RUN))

/* ------------------------------------------------------------------------------------------------
 * Statistics: copied under the GIL's mutex, converted after it.
 */

struct thread_row {
    unsigned long long ident;
    long native_id;
    int class;
    unsigned long long cpu_ns, wait_ns, hold_ns, waits, switches;
};

struct thread_table {
    struct thread_row *rows;
    size_t count, size;
};

static uint64_t
cpu_time_ns(pid_t native_id)
{
    /* The same clock id as pthread_getcpuclockid(3) returns, computed from the kernel's thread id: that function
     * dereferences the pthread_t, which may be gone. */
    clockid_t clock = (clockid_t)(~(unsigned)native_id << 3 | 6u);
    struct timespec ts;

    if (clock_gettime(clock, &ts) != 0) {
        return 0;
    }
    return plus_timespec_ns(&ts);
}

/* Called under the registry's lock, so the thread cannot end meanwhile. */
static void
copy_thread(struct plus_thread *thread, void *argument)
{
    struct thread_table *table = argument;

    if (table->count < table->size) {
        table->rows[table->count++] = (struct thread_row){
            .ident = (unsigned long long)thread->ident,
            .native_id = thread->native_id,
            .class = plus_sched_class(thread),
            .cpu_ns = cpu_time_ns(thread->native_id),
            .wait_ns = thread->wait_ns,
            .hold_ns = thread->hold_ns,
            .waits = thread->waits,
            .switches = thread->switches,
        };
    }
}

static PyObject *
times_tuple(const struct plus_histogram *h)
{
    return Py_BuildValue("(KKKKK)", h->count, h->total_ns, plus_histogram_quantile_ns(h, 0.50),
                         plus_histogram_quantile_ns(h, 0.99), h->max_ns);
}

static PyObject *
threads_tuple(const struct thread_table *table)
{
    PyObject *result = PyTuple_New((Py_ssize_t)table->count);

    for (size_t i = 0; result != NULL && i < table->count; i++) {
        const struct thread_row *row = &table->rows[i];
        PyObject *item =
            Py_BuildValue("(KliKKKKK)", row->ident, row->native_id, row->class, row->cpu_ns,
                          row->wait_ns, row->hold_ns, row->waits, row->switches);
        if (item == NULL) {
            Py_CLEAR(result);
            break;
        }
        PyTuple_SET_ITEM(result, (Py_ssize_t)i, item);
    }
    return result;
}

static PyObject *
gil_statistics(PyObject *module, PyObject *args)
{
    PyObject *result = NULL;
    struct plus_sched_counts *counts = malloc(sizeof(*counts));
    /* Threads that begin meanwhile are left out. */
    struct thread_table table = {.size = plus_threads_count() + 16u};

    table.rows = malloc(table.size * sizeof(*table.rows));
    if (counts == NULL || table.rows == NULL) {
        PyErr_NoMemory();
        goto done;
    }
    plus_control_lock();
    plus_sched_counts(counts);
    plus_threads_visit(copy_thread, &table);
    plus_control_unlock();
    result = Py_BuildValue(
        "((KKKKKK)(NN)(NN)NN)", counts->switches, counts->forced_switches, counts->requests,
        counts->immediate_requests, counts->repeated_requests, counts->protected_runs,
        times_tuple(&counts->waits[PLUS_INTERACTIVE]),
        times_tuple(&counts->holds[PLUS_INTERACTIVE]), times_tuple(&counts->waits[PLUS_BATCH]),
        times_tuple(&counts->holds[PLUS_BATCH]), threads_tuple(&table), plus_atomic_counts());
done:
    free(counts);
    free(table.rows);
    return result;
}

/* ------------------------------------------------------------------------------------------------
 * The threads now, for `top`.
 */

struct moment {
    unsigned long long serial, ident;
    long native_id;
    struct plus_present present;
    unsigned long long wait_ns, hold_ns, waits;
    struct plus_brief_histogram wait_times;
};

struct moments {
    struct moment *rows;
    size_t count, size;
    uint64_t now;
};

/* Called under the registry's lock. */
static void
copy_moment(struct plus_thread *thread, void *argument)
{
    struct moments *table = argument;

    if (table->count < table->size) {
        table->rows[table->count++] = (struct moment){
            .serial = thread->serial,
            .ident = (unsigned long long)thread->ident,
            .native_id = thread->native_id,
            .present = plus_sched_present(thread, table->now),
            .wait_ns = thread->wait_ns,
            .hold_ns = thread->hold_ns,
            .waits = thread->waits,
            .wait_times = thread->wait_times,
        };
    }
}

/* The filled buckets: their longest duration and their count, one after the other. */
static PyObject *
brief_times(const struct plus_brief_histogram *h)
{
    PyObject *result = PyList_New(0);

    for (unsigned i = 0; result != NULL && i < PLUS_BRIEF_BUCKETS; i++) {
        if (h->buckets[i] == 0) {
            continue;
        }
        plus_append_row(&result, PyLong_FromUnsignedLongLong(plus_brief_histogram_upper_ns(i)));
        plus_append_row(&result, PyLong_FromUnsignedLong(h->buckets[i]));
    }
    return result;
}

static PyObject *
moment_tuple(const struct moment *row)
{
    const struct plus_present *present = &row->present;

    return Py_BuildValue("(KKlIOKKKKKN)", row->serial, row->ident, row->native_id, present->level,
                         present->holds ? Py_True : Py_False, present->since_ns, present->waits_for,
                         row->wait_ns, row->hold_ns, row->waits, brief_times(&row->wait_times));
}

static PyObject *
gil_threads(PyObject *module, PyObject *args)
{
    struct moments table = {.size = plus_threads_count() + 16u, .now = plus_now_ns()};

    table.rows = malloc(table.size * sizeof(*table.rows));
    if (table.rows == NULL) {
        return PyErr_NoMemory();
    }
    plus_control_lock();
    plus_threads_visit(copy_moment, &table);
    plus_control_unlock();
    PyObject *result = PyList_New(0);
    for (size_t i = 0; result != NULL && i < table.count; i++) {
        plus_append_row(&result, moment_tuple(&table.rows[i]));
    }
    free(table.rows);
    return result;
}

/* Zeros for a thread that has never met another one: it is not timed. */
static PyObject *
gil_thread_use(PyObject *module, PyObject *ignored)
{
    const struct plus_thread *self = plus_thread_if_known();
    struct timespec cpu = {0};
    struct rusage usage = {0};
    uint64_t held_ns = 0, waited_ns = 0, stalls = 0;

    if (self != NULL) {
        plus_control_lock(); /* a waiter begins to time a hold */
        uint64_t since_ns = self->acquired_ns;
        held_ns = self->hold_ns + (since_ns != 0 ? plus_now_ns() - since_ns : 0);
        waited_ns = self->wait_ns;
        stalls = self->stalls;
        plus_control_unlock();
    }
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
    (void)getrusage(RUSAGE_THREAD, &usage);
    uint64_t new_bytes = (uint64_t)usage.ru_minflt * plus_page_bytes();
    return Py_BuildValue("(KKKKK)", (unsigned long long)held_ns, (unsigned long long)waited_ns,
                         (unsigned long long)plus_timespec_ns(&cpu), (unsigned long long)stalls,
                         (unsigned long long)new_bytes);
}

static PyObject *
gil_reset_statistics(PyObject *module, PyObject *args)
{
    plus_control_lock();
    plus_sched_reset_counts();
    plus_control_unlock();
    plus_atomic_reset_counts();
    Py_RETURN_NONE;
}

PyMethodDef plus_gil_methods[] = {
    {"gil_start", gil_start, METH_VARARGS, NULL},
    {"gil_rehearse", gil_rehearse, METH_O, NULL},
    {"gil_stop", gil_stop, METH_NOARGS, NULL},
    {"gil_prove", gil_prove, METH_NOARGS, NULL},
    {"gil_proven", gil_proven, METH_NOARGS, NULL},
    {"gil_active", gil_active, METH_NOARGS, NULL},
    {"gil_statistics", gil_statistics, METH_NOARGS, NULL},
    {"gil_threads", gil_threads, METH_NOARGS, NULL},
    {"gil_thread_use", gil_thread_use, METH_NOARGS, NULL},
    {"gil_reset_statistics", gil_reset_statistics, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
