/* The registry of thread records, and the check whether a thread is alone.
 *
 * A thread makes its record at the first call that needs one; the destructor of a thread-specific key frees it when the
 * thread ends.  The thread itself finds its record through thread-local storage, without a lock.  Others find it by its
 * serial, under the registry's lock, which keeps the thread from ending.  Code that keeps a record's address without
 * that lock may follow it only while the thread cannot end (it waits in the queue or has the GIL), or until
 * plus_sched_forget() has cleared the pointer; otherwise it may only compare the address.
 *
 * plus_thread_single is the only record, and NULL if there are several.  A thread makes its record under the GIL's
 * mutex before it waits, so a thread that is alone and holds the mutex stays alone until it releases the mutex.  So
 * the calls of a single-threaded program cost one comparison.
 *
 * Locks: the registry's lock is taken inside the GIL's mutex or without it; no lock is taken inside it.  A thread that
 * ends takes it without the mutex.
 *
 * fork: the forking thread holds the lock, and initialises it again in the child, where its record is the only one.  The
 * hooks are registered before those of control.c, which take the GIL's mutex, and so run inside of them.
 */
#define _GNU_SOURCE
#include "thread.h"

#include "../../_base/process/fork.h"
#include "../../_base/process/identity.h"
#include "../../_base/rank.h"
#include "kernel_slice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* With ten thousand threads a bucket has forty. */
#define BUCKETS 256u

_Thread_local struct plus_thread *plus_thread_own PLUS_FAST_TLS;
_Atomic(struct plus_thread *) plus_thread_single; /* written under registry_lock */

static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static struct plus_thread *registry[BUCKETS]; /* by serial; under registry_lock */
static _Atomic unsigned registry_size;        /* written under registry_lock */
static pthread_key_t exit_key;
static bool exit_key_made;
static void (*on_exit_callback)(struct plus_thread *);

static void
lock_registry(void)
{
    plus_rank_taken(PLUS_RANK_REGISTRY);
    pthread_mutex_lock(&registry_lock);
}

static void
unlock_registry(void)
{
    pthread_mutex_unlock(&registry_lock);
    plus_rank_given(PLUS_RANK_REGISTRY);
}

static struct plus_thread **
bucket_of(uint64_t serial)
{
    return &registry[serial % BUCKETS];
}

static void
note_single(void)
{
    struct plus_thread *single = NULL;

    if (atomic_load(&registry_size) == 1u) {
        for (unsigned i = 0; i < BUCKETS && single == NULL; i++) {
            single = registry[i];
        }
    }
    atomic_store(&plus_thread_single, single);
}

static void
thread_exits(void *record)
{
    struct plus_thread *thread = record;

    if (on_exit_callback != NULL) {
        on_exit_callback(thread);
    }
    lock_registry();
    struct plus_thread *prev = thread->registry_prev;

    *(prev != NULL ? &prev->registry_next : bucket_of(thread->serial)) = thread->registry_next;
    if (thread->registry_next != NULL) {
        thread->registry_next->registry_prev = prev;
    }
    atomic_fetch_sub(&registry_size, 1);
    note_single();
    unlock_registry();
    plus_thread_own = NULL;
    free(thread);
}

/* The other threads' records are leaked on purpose: they are a few hundred bytes each, and freeing
 * them would write to pages that parent and child share. */
static void
after_fork_child(void)
{
    pthread_mutex_init(&registry_lock, NULL);
    plus_rank_given(PLUS_RANK_REGISTRY);
    memset(registry, 0, sizeof(registry));
    atomic_store(&registry_size, plus_thread_own != NULL ? 1u : 0u);
    if (plus_thread_own != NULL) {
        plus_thread_own->registry_next = NULL;
        plus_thread_own->registry_prev = NULL;
        *bucket_of(plus_thread_own->serial) = plus_thread_own;
        plus_thread_own->native_id = (pid_t)syscall(SYS_gettid);
    }
    note_single();
}

static const struct plus_fork_hooks fork_hooks = {lock_registry, unlock_registry, after_fork_child};

int
plus_threads_init(void)
{
    int error = exit_key_made ? 0 : pthread_key_create(&exit_key, thread_exits);

    exit_key_made = error == 0;
    return error == 0 ? plus_fork_register(&fork_hooks) : -error;
}

void
plus_threads_on_exit(void (*callback)(struct plus_thread *))
{
    on_exit_callback = callback;
}

static struct plus_thread *
make_record(void)
{
    uint64_t serial = plus_identity(); /* may make the record: threads/waiting/present_waits.c */

    if (plus_thread_own != NULL) {
        return plus_thread_own;
    }
    struct plus_thread *thread = calloc(1, sizeof(*thread));

    if (thread == NULL) {
        return NULL;
    }
    thread->ident = pthread_self();
    thread->native_id = (pid_t)syscall(SYS_gettid);
    thread->serial = serial;
    lock_registry();
    struct plus_thread **bucket = bucket_of(thread->serial);
    thread->registry_next = *bucket;
    if (*bucket != NULL) {
        (*bucket)->registry_prev = thread;
    }
    *bucket = thread;
    atomic_fetch_add(&registry_size, 1);
    note_single();
    unlock_registry();
    pthread_setspecific(exit_key, thread);
    plus_kernel_slice_begin();
    plus_thread_own = thread;
    return thread;
}

struct plus_thread *
plus_thread_try_self(void)
{
    struct plus_thread *thread = plus_thread_own;

    return thread != NULL ? thread : make_record();
}

struct plus_thread *
plus_thread_self(void)
{
    struct plus_thread *thread = plus_thread_try_self();

    if (thread == NULL) {
        fprintf(stderr, "cpythonplus: no memory for a thread's record\n");
        abort();
    }
    return thread;
}

unsigned
plus_threads_count(void)
{
    return atomic_load_explicit(&registry_size, memory_order_relaxed);
}

void
plus_threads_visit(void (*visit)(struct plus_thread *, void *), void *argument)
{
    lock_registry();
    for (unsigned i = 0; i < BUCKETS; i++) {
        for (struct plus_thread *t = registry[i]; t != NULL; t = t->registry_next) {
            visit(t, argument);
        }
    }
    unlock_registry();
}

void
plus_threads_visit_one(uint64_t serial, void (*visit)(struct plus_thread *, void *), void *argument)
{
    lock_registry();
    struct plus_thread *thread = *bucket_of(serial);

    while (thread != NULL && thread->serial != serial) {
        thread = thread->registry_next;
    }
    if (thread != NULL) {
        visit(thread, argument);
    }
    unlock_registry();
}
