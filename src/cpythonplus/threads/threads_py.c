/* The room's part of the extension module: its parts, and its fork hooks. */
#include "binding.h"

#include "../_base/process/fork.h"
#include "../_base/raise.h"
#include "locks/barrier_py.h"
#include "waiting/waiting.h"

static void
nothing_to_do(void)
{
}

/* Runs before the interpreter's own re-initialisation. */
static void
after_fork_child(void)
{
    plus_spin_atfork_child();
    plus_waitq_atfork_child();
    plus_barrier_atfork_child();
    plus_waiting_atfork_child();
}

static const struct plus_fork_hooks fork_hooks = {nothing_to_do, nothing_to_do, after_fork_child};

int
plus_threads_exec(PyObject *module)
{
    static plus_types_exec *const exec[] = {
        plus_waiting_exec,   plus_lock_exec,         plus_condition_exec,
        plus_semaphore_exec, plus_event_exec,        plus_barrier_exec,
        plus_queue_exec,     plus_simple_queue_exec, plus_standard_exec,
    };

    for (size_t i = 0; i < sizeof(exec) / sizeof(exec[0]); i++) {
        if (exec[i](module, PyModule_GetState(module)) < 0) {
            return -1;
        }
    }
    int rc = plus_fork_register(&fork_hooks);
    if (rc < 0) {
        plus_raise_errno("pthread_atfork", -rc);
    }
    return rc < 0 ? -1 : 0;
}
