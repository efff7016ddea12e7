/* Giving a tasklet its C stack, when it first runs.
 *
 * All stacks of a thread have one size, the one that a thread started now would get, as the code may need any of it.
 * They are reserved, not used; so address space limits them, not memory.  If address space is short (`ulimit -v`, a
 * kernel that counts each mapping), smaller ones are made from the first stack on, unless the program has set the
 * size; a warning says so once.
 *
 * When very many are in use, some tasklets that have been parked for long are taken off their stacks first
 * (vacating.c); if that cannot be done, all of them are made cold (cold.c).
 *
 * Called with the GIL held.
 */
#include "own_stack.h"

#include "../../_base/process/clock.h"
#include "cold.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

/* Number of stacks in use (0.85 GB) at which a thread takes tasklets off theirs before it makes more.  If that cannot
 * be done, it looks for cold ones, and again each time the number has grown by a fourth. */
#define TRIM_AT ((size_t)98304)
#define TRIM_PARKED_NS (PLUS_NS_PER_S / 4)
#define VACATED_AT_ONCE 256 /* the next tasklets use the pages of those */

#define LEAST_DEFAULT_BYTES ((size_t)512 << 10) /* of a stack, if threads get less */
#define FEW_BYTES ((size_t)128 << 10)           /* of a stack, if address space is short */
#define PART_OF_LIMIT 8192u                     /* a stack gets RLIMIT_AS / PART_OF_LIMIT at most */

size_t plus_new_stack_bytes;

size_t
plus_default_stack_bytes(void)
{
    size_t bytes = PyThread_get_stacksize();
    pthread_attr_t attr;

    if (bytes == 0 && pthread_attr_init(&attr) == 0) {
        (void)pthread_attr_getstacksize(&attr, &bytes);
        pthread_attr_destroy(&attr);
    }
    bytes = bytes < LEAST_DEFAULT_BYTES ? LEAST_DEFAULT_BYTES : bytes;
    return bytes < PLUS_STACK_BYTES_MAX ? bytes : PLUS_STACK_BYTES_MAX;
}

void
plus_own_stacks_init(struct plus_scheduler *sched)
{
    sched->stacks.stack_bytes =
        plus_new_stack_bytes != 0 ? plus_new_stack_bytes : plus_default_stack_bytes();
    sched->room.trim_at = TRIM_AT;
}

/* Reduces the size if address space is short, so that stacks do not use it up. */
static size_t
afford(size_t bytes)
{
    struct rlimit limit;
    char policy = '0';
    int fd = open("/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC);

    if (fd >= 0) {
        (void)!read(fd, &policy, 1);
        close(fd);
    }
    if (policy == '2' && bytes > FEW_BYTES) {
        bytes = FEW_BYTES; /* each mapping counts as memory */
    }
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        bytes > limit.rlim_cur / PART_OF_LIMIT) {
        bytes = limit.rlim_cur / PART_OF_LIMIT;
        bytes =
            bytes < 2 * PLUS_STACK_BYTES_WIDE ? FEW_BYTES : bytes; /* guards use addresses too */
    }
    return bytes;
}

int
plus_make_ready(struct plus_tasklet *task)
{
    if (task->stack != NULL || task->started) {
        return 0;
    }
    struct plus_stack_pool *stacks = &task->sched->stacks;

    if (stacks->in_use >= task->sched->room.trim_at &&
        plus_above.vacate(task->sched, TRIM_PARKED_NS, VACATED_AT_ONCE) == 0) {
        plus_scheduler_trim(task->sched, TRIM_PARKED_NS);
        size_t again = stacks->in_use + stacks->in_use / 4;
        task->sched->room.trim_at = again > TRIM_AT ? again : TRIM_AT;
    }
    size_t bytes = stacks->stack_bytes;

    if (!task->sched->room.fits && plus_new_stack_bytes == 0) {
        plus_stacks_resize(stacks, afford(bytes));
    }
    task->sched->room.fits = true;
    task->stack = plus_stack_take(stacks, task);
    if (task->stack == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    if (stacks->stack_bytes < bytes) {
        /* The program's filters may make the warning an error; that goes to sys.unraisablehook, and the tasklet
         * still begins. */
        if (PyErr_WarnFormat(PyExc_RuntimeWarning, 1,
                             "not enough address space for C stacks of %zu KiB (ulimit -v, "
                             "vm.overcommit_memory): tasklets get %zu KiB from now on",
                             bytes >> 10, task->sched->stacks.stack_bytes >> 10) < 0) {
            PyErr_WriteUnraisable(NULL);
        }
    }
    return 0;
}
