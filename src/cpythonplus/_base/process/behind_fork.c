/* If the main thread forks and is alone, `go_on` waits in a pending call.  The interpreter makes pending calls in the
 * main thread, between two instructions: at the latest when os.fork has returned, but also while hooks that are written
 * in Python run.  A hook's frame has a caller that is the function that called os.fork, and is still at that call: then
 * the pending call is put off again.  If there are other threads the warning comes anyway, so `go_on` is called at
 * once.
 *
 * Rejected: a thread that waits until the fork is over, which would be counted itself; checking the version, as the
 * place where threads are counted has changed in a bugfix release.
 */
#include "behind_fork.h"

#include "../compat.h"

#include <dirent.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The frame of the function that called os.fork; compared, never followed.  Guarded by the GIL. */
static void *forking_frame;
static int forking_instruction;

static bool
is_alone(void)
{
    DIR *tasks = opendir("/proc/self/task");
    int found = 0;

    while (tasks != NULL && found < 2) {
        const struct dirent *entry = readdir(tasks);
        if (entry == NULL) {
            break;
        }
        found += entry->d_name[0] != '.';
    }
    if (tasks != NULL) {
        closedir(tasks);
    }
    return found == 1 && syscall(SYS_gettid) == getpid();
}

/* True if os.fork has called the running code. */
static bool
is_inside_of_fork(void)
{
    PyFrameObject *frame = PyEval_GetFrame();

    if (frame == NULL || (void *)frame == forking_frame) {
        return false;
    }
    Py_INCREF(frame);
    bool inside = false;
    while (frame != NULL && !inside) {
        PyFrameObject *back = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = back;
        inside = frame != NULL && (void *)frame == forking_frame &&
                 PyFrame_GetLasti(frame) == forking_instruction;
    }
    Py_XDECREF(frame);
    PyErr_Clear(); /* of a frame that could not be made */
    return inside;
}

static int
call(void *argument)
{
    if (!is_inside_of_fork() || Py_AddPendingCall(call, argument) != 0) {
        ((void (*)(void))(uintptr_t)argument)();
    }
    return 0;
}

void
plus_behind_fork(void (*go_on)(void))
{
    PyFrameObject *frame = PyEval_GetFrame();

    if (frame != NULL && is_alone()) {
        forking_frame = frame;
        forking_instruction = PyFrame_GetLasti(frame);
        if (Py_AddPendingCall(call, (void *)(uintptr_t)go_on) == 0) {
            return;
        }
    }
    go_on();
}
