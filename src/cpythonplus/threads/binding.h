/* What the files of this room share that know Python, and what the room adds to the extension.
 *
 * Everything here is called with the GIL held (attached, on a free-threaded build).
 */
#ifndef PLUS_THREADS_BINDING_H
#define PLUS_THREADS_BINDING_H

#include "../_base/compat.h"

#ifndef Py_GIL_DISABLED
#define PLUS_LOCK_UNDER_GIL
#endif
#include "lock.h"
#include "standard.h"
#include "waiting.h"

#include "../_base/futex.h"
#include "../_base/raise.h"

/* ---- objects ---------------------------------------------------------------------------------- */

typedef struct {
    PyObject_HEAD struct plus_lock lock;
    PyObject *weakrefs;
} plus_lock_object;

typedef struct {
    PyObject_HEAD struct plus_lock lock;
    PyObject *weakrefs;        /* to here as plus_lock_object */
    unsigned long count;       /* of the owner's acquisitions; only the owner touches it */
    unsigned long owner_ident; /* what threading.get_ident() says of the owner; for repr */
} plus_rlock_object;

typedef struct {
    PyObject_HEAD struct plus_waitq queue; /* threads inside wait() */
    PyObject *lock;
    PyObject
        *waiters; /* deque of the locks that threading.Condition.wait() itself sleeps on; or NULL */
    PyObject *dict, *weakrefs;
    bool native; /* `lock` is exactly a Lock or an RLock of ours */
    bool recursive;
} plus_condition_object;

/* Takes the last item off a list of ours, for which PyList_SetSlice() may want memory. */
static inline void
plus_list_drop_last(PyObject *list)
{
    Py_ssize_t last = PyList_GET_SIZE(list) - 1;
    PyObject *item = PyList_GET_ITEM(list, last);

    Py_SET_SIZE((PyVarObject *)list, last);
    Py_DECREF(item);
}

/* How many of the types stand for a class that is written in Python. */
#define PLUS_STANDARDS 8

/* What the types of one interpreter refer to.  Fixed once the module is initialised, but for `standards`. */
struct plus_threads_state {
    PyTypeObject *lock, *rlock, *condition, *semaphore, *bounded_semaphore, *event, *barrier;
    PyTypeObject *queue, *lifo_queue, *priority_queue, *simple_queue;
    PyObject *deque, *deque_append, *deque_popleft; /* the type and its functions */
    PyObject *heappush, *heappop;
    PyObject
        *stock_lock; /* for its words about wrong arguments; NULL where another package made it */
    struct plus_standard standards[PLUS_STANDARDS];
};

extern struct PyModuleDef plus_native_module; /* of the whole extension; its state is this room's */

/* Function and flags of a method table's entry. */
#define PLUS_KEYWORDS(f) ((PyCFunction)(void (*)(void))(f)), METH_FASTCALL | METH_KEYWORDS
#define PLUS_FAST(f) ((PyCFunction)(void (*)(void))(f)), METH_FASTCALL

/* Forgets the result of a call: 0, or -1 for none. */
static inline int
plus_done(PyObject *result)
{
    Py_XDECREF(result);
    return result != NULL ? 0 : -1;
}

/* What a method returns that has done something, or found something out; NULL for a negative number,
 * which comes with an exception. */
static inline PyObject *
plus_none(int rc)
{
    return rc < 0 ? NULL : Py_NewRef(Py_None);
}

static inline PyObject *
plus_truth(int rc)
{
    return rc < 0 ? NULL : PyBool_FromLong(rc);
}

int
plus_threads_exec(PyObject *module);
int
plus_threads_traverse(PyObject *module, visitproc visit, void *arg);
int
plus_threads_clear(PyObject *module);

/* The state of the module that made `type` or one of its bases; NULL with an exception. */
struct plus_threads_state *
plus_threads_state(PyTypeObject *type);

/* Each makes one type, or several, in *state.  0 or -1 with an exception. */
typedef int
plus_types_exec(PyObject *module, struct plus_threads_state *state);
plus_types_exec plus_lock_exec, plus_condition_exec, plus_semaphore_exec, plus_event_exec,
    plus_barrier_exec, plus_queue_exec, plus_simple_queue_exec;

/* Makes a type in *made and adds it to the module by the name `as`; `base` may be NULL.  0, or -1 with
 * an exception. */
int
plus_add_type(PyObject *module, PyTypeObject **made, const char *as, const char *name, size_t size,
              unsigned long flags, PyType_Slot *slots, PyTypeObject *base);

/* ---- arguments (arguments.c) ------------------------------------------------------------------ */

struct plus_signature {
    const char *name; /* of the function, for messages */
    const char *const *parameters;
    int count, required, keyword_only; /* the last keyword_only of them */
};

/* One whose parameters can all be given by position. */
#define PLUS_SIGNATURE(function, required_, ...)                                                   \
    {                                                                                              \
        .name = (function),                                                                        \
        .parameters = (const char *const[]){__VA_ARGS__},                                          \
        .count = (int)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *)),         \
        .required = (required_),                                                                   \
    }

/* Sorts the arguments of a METH_FASTCALL | METH_KEYWORDS function into out[0..count), borrowed; NULL
 * for what was not given.  0, or -1 with TypeError. */
int
plus_arguments(const struct plus_signature *signature, PyObject *const *args, Py_ssize_t nargs,
               PyObject *kwnames, PyObject **out);

/* The same for a tp_init. */
int
plus_init_arguments(const struct plus_signature *signature, PyObject *args, PyObject *kwargs,
                    PyObject **out);

/* 0, or -1 with TypeError if anything was given to a callable without parameters. */
int
plus_no_arguments(const char *name, PyObject *args, PyObject *kwargs);

/* Dead line of a call of acquire(blocking=True, timeout=-1); 0: do not wait.  0, or -1 with ValueError,
 * OverflowError or TypeError. */
int
plus_acquire_arguments(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
                       uint64_t *deadline_ns);

/* Dead lines that are none: as in the standard library, such a time-out is an error only for a call
 * that has to wait.  plus_check_deadline raises it: 0, or -1 with OverflowError or ValueError. */
#define PLUS_DEADLINE_TOO_LARGE (UINT64_MAX - 1u)
#define PLUS_DEADLINE_NEGATIVE (UINT64_MAX - 2u)
#define PLUS_DEADLINE_NAN (UINT64_MAX - 3u)
#define PLUS_DEADLINE_VERY_NEGATIVE (UINT64_MAX - 4u) /* beyond a 64-bit clock */

int
plus_check_deadline(uint64_t deadline_ns);

/* Dead line of a wait(timeout=None): 0 for a time-out that is not above zero, as in
 * threading.Condition; may be TOO_LARGE or, from 3.14 on, NAN.  -1 with TypeError. */
int
plus_wait_deadline(PyObject *timeout, uint64_t *deadline_ns);

/* Dead line of a get(block=True, timeout=None) and the like; may be any of the above.  -1 with
 * TypeError. */
int
plus_queue_deadline(PyObject *block, PyObject *timeout, uint64_t *deadline_ns);

/* Of both sorts of queue. */
extern const struct plus_signature plus_put_signature, plus_put_nowait_signature,
    plus_get_signature;

/* How many items a call of drain(max_items=None) takes at most.  0, or -1 with an exception. */
int
plus_drain_arguments(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, Py_ssize_t *limit);

/* ---- waiting (waiting.c) ---------------------------------------------------------------------- */

/* Waits until `lock` is the calling thread's or the dead line has passed; signal handlers run
 * meanwhile.  1: acquired; 0: timed out; -1 with what a handler raised, or PythonFinalizationError. */
int
plus_acquire(struct plus_lock *lock, uint64_t deadline_ns);

/* The same without a dead line; tries first.  0, or -1 with an exception. */
static inline int
plus_lock_enter(struct plus_lock *lock)
{
    if (plus_lock_try(lock, plus_identity())) {
        return 0;
    }
    return plus_acquire(lock, PLUS_FUTEX_NO_DEADLINE) < 0 ? -1 : 0;
}

/* Without a dead line too, and handlers run later: never fails. */
void
plus_acquire_surely(struct plus_lock *lock);

/* Waits in `queue`, where `waiter` is queued already.  WOKEN, GRANTED or TIMED_OUT; or SIGNAL with
 * what a handler raised: then the waiter is queued no longer, and *ended says how its wait had ended
 * when it left (TIMED_OUT: not at all), which the caller has to pass on. */
enum plus_wait_result
plus_wait(struct plus_waitq *queue, struct plus_waiter *waiter, uint64_t deadline_ns,
          enum plus_wait_result *ended);

/* Registers what a fork does to this room.  0, or -1 with an exception. */
int
plus_waiting_init(void);

/* ---- statistics (statistics_py.c) ------------------------------------------------------------- */

/* A new WaitStatistics. */
PyObject *
plus_statistics(const struct plus_wait_counts *counts);

/* The same of one queue. */
PyObject *
plus_statistics_of(struct plus_waitq *queue);

/* Adds up; the longest is the maximum. */
void
plus_counts_add(struct plus_wait_counts *sum, const struct plus_wait_counts *more);

/* A new context manager that acquires `self` for a with block, if that succeeds in time. */
PyObject *
plus_acquire_timeout(PyObject *self, PyObject *timeout);
extern const char plus_acquire_timeout_doc[];
extern const char plus_statistics_doc[];

/* ---- RLock's inside --------------------------------------------------------------------------- */

/* Only the thread itself can make its own number the owner, so a plain read is enough. */
static inline bool
plus_rlock_is_owned(const plus_rlock_object *self)
{
    return atomic_load_explicit(&self->lock.owner, memory_order_relaxed) == plus_identity();
}

static inline void
plus_rlock_begin(plus_rlock_object *self, unsigned long count)
{
    self->count = count;
    self->owner_ident = plus_identity_ident();
}

/* Private to the two functions below. */
int
plus_rlock_acquire_slowly(plus_rlock_object *self, uint64_t deadline_ns);
int
plus_rlock_release_slowly(plus_rlock_object *self);

/* As plus_acquire; dead line 0: without waiting. */
static inline int
plus_rlock_acquire(plus_rlock_object *self, uint64_t deadline_ns)
{
    if (plus_lock_change(&self->lock, 0, PLUS_LOCK_LOCKED, memory_order_acquire)) {
        atomic_store_explicit(&self->lock.owner, plus_identity(), memory_order_relaxed);
        plus_rlock_begin(self, 1);
        return 1;
    }
    return plus_rlock_acquire_slowly(self, deadline_ns);
}

/* 0, or -1 with RuntimeError. */
static inline int
plus_rlock_release(plus_rlock_object *self)
{
    if (self->count == 1 && plus_rlock_is_owned(self)) {
        self->count = 0;
        plus_lock_release(&self->lock);
        return 0;
    }
    return plus_rlock_release_slowly(self);
}

/* ---- Condition's inside, for the types that are built on it ------------------------------------ */

/* A Condition over a new Lock, or over `lock`, which must be a Lock or RLock of ours. */
plus_condition_object *
plus_condition_new(struct plus_threads_state *state, PyObject *lock);

/* The plain Lock under a condition that plus_condition_new made over one. */
static inline struct plus_lock *
plus_condition_lock(plus_condition_object *self)
{
    return &((plus_lock_object *)self->lock)->lock;
}

/* Takes the condition's plain lock, with signal handlers running.  0, or -1 with what one raised. */
static inline int
plus_condition_enter(plus_condition_object *self)
{
    return plus_lock_enter(plus_condition_lock(self));
}

static inline void
plus_condition_leave(plus_condition_object *self)
{
    plus_lock_release(plus_condition_lock(self));
}

/* One wait, the condition's plain lock being held; it is held again afterwards, also on failure.
 * A dead line that is none counts as failure.
 * Appends or, after a wait that was in vain, prepends the waiter.  WOKEN, GRANTED, TIMED_OUT, or SIGNAL
 * with an exception: a notification that had come is passed on, a grant is given back through *ended. */
enum plus_wait_result
plus_condition_sleep(plus_condition_object *self, struct plus_waiter *waiter, uint64_t deadline_ns,
                     enum plus_wait_result *ended);

/* The same for those who wait in threading.Condition.wait() itself, which somebody has called with a
 * native condition.  Returns how many of `count` are left. */
uint32_t
plus_condition_notify_standard(plus_condition_object *self, uint32_t count);

/* Ends the waits of up to `count` threads.  The lock is held.  (Reading the length without the guard is
 * right then: who is about to wait has the lock until it is queued.) */
static inline void
plus_condition_notify(plus_condition_object *self, uint32_t count)
{
    if (__builtin_expect(self->waiters != NULL, 0)) {
        count = plus_condition_notify_standard(self, count);
    }
    if (plus_waitq_length(&self->queue) > 0) {
        plus_waitq_wake(&self->queue, count);
    }
}

/* As new, in the child of a fork: its lock free, and nobody waits.  0, or -1 with an exception. */
int
plus_condition_reinit(plus_condition_object *self);

/* In the child of a fork, by the thread that goes on waiting there: it still counts as waiting. */
void
plus_barrier_atfork_child(void);

/* ---- what types have in common (threads_py.c) -------------------------------------------------- */

/* "<module.Type at 0x...: state>", the state formatted as by PyUnicode_FromFormat. */
PyObject *
plus_repr_with(PyObject *op, const char *format, Py_ssize_t first, Py_ssize_t second);

/* The members that make place for weak references and a dict. */
#define PLUS_STANDARD_MEMBERS(type)                                                                \
    {"__weaklistoffset__", Py_T_PYSSIZET, offsetof(type, weakrefs), Py_READONLY, NULL},            \
        {"__dictoffset__", Py_T_PYSSIZET, offsetof(type, dict), Py_READONLY, NULL},                \
    {                                                                                              \
        "__weakref__", _Py_T_OBJECT, offsetof(type, weakrefs), Py_READONLY, NULL                   \
    }

/* The entries for __class__ and __dict__ of a type that stands for a standard class. */
#define PLUS_STANDARD_GETSET                                                                       \
    {"__class__", plus_standard_get_class, NULL, NULL, NULL},                                      \
    {                                                                                              \
        "__dict__", plus_standard_get_dict, PyObject_GenericSetDict, NULL, NULL                    \
    }
extern PyGetSetDef plus_standard_getset[];
#define PLUS_STANDARD_METHODS                                                                      \
    {"__dir__", plus_standard_list_names, METH_NOARGS, NULL},                                      \
    {                                                                                              \
        "__reduce_ex__", plus_standard_reduce, METH_O, NULL                                        \
    }

/* tp_dealloc of types with weak references and a tp_clear, from which no Python class is derived. */
void
plus_dealloc(PyObject *op);

/* The same for others: by what is their own tp_clear. */
void
plus_dealloc_by(PyObject *op, inquiry clear);

#endif
