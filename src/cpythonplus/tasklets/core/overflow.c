/* One handler for the process, one alternate stack for each thread that uses tasklets.
 *
 * The protocol of a fault:
 *
 *   1. An instruction fails.  The C stack may be full, so the kernel calls the handler on the thread's alternate
 *      stack.  Without one (sigaltstack() failed, or other code has removed it) the kernel ends the process.
 *   2. The handler looks for the address in the guards of the running thread's own pool.  No other thread changes that
 *      pool, and a slab is complete before it is linked, so this works wherever the thread was interrupted.
 *   3. It restores the former action (SIG_DFL, faulthandler, a virtual machine), and returns.  The instruction fails
 *      once more, and the kernel calls the former handler as if ours had not been there: with the same address,
 *      registers, mask and flags.
 *
 * So our handler is in front until the first fault of the process, of any kind, and never comes back: a virtual machine
 * that repairs faults pays for it once, and reports later overruns itself.  A handler that is installed later is in
 * front of ours; faulthandler then passes the signal on by raise().
 *
 * A signal that was sent (si_code <= 0) has no failed instruction, so step 3 raises it again.  It is blocked while the
 * handler runs, and arrives when that returns.  Its si_addr contains the sender's process and user, or anything that
 * the sender likes, so it is not looked up.
 *
 * A program that declines the handler loses only step 2: overruns end the process by the same signal, without a
 * message. The alternate stacks are there all the same, as other handlers need them in a tasklet.
 *
 * Rejected: calling the earlier handler from ours; its mask, its flags (SA_NODEFER, SA_RESETHAND) and SIG_DFL would
 * have to be imitated.  Rejected: installing at the import; a program that imports tasklets and does not use them
 * would have the handler.
 *
 * The handler calls only async-signal-safe functions.  fork: the child's handlers and stacks are copies.
 */
#define _GNU_SOURCE /* sigaltstack */
#include "overflow.h"

#include "task.h"

#include <signal.h>
#include <unistd.h>

#define SIGNAL_STACK_BYTES ((size_t)32 << 10) /* faulthandler runs on it too */

static struct sigaction previous;
static bool declined;

static void
say(const char *text)
{
    ssize_t ignored = write(STDERR_FILENO, text, strlen(text));

    (void)ignored;
}

static void
say_kib(size_t bytes)
{
    char digits[24];
    char *at = digits + sizeof(digits) - 1;

    *at = '\0';
    for (size_t rest = bytes >> 10; at == digits + sizeof(digits) - 1 || rest > 0; rest /= 10) {
        *--at = (char)('0' + rest % 10);
    }
    say(at);
}

static void
on_segv(int signal, siginfo_t *info, void *context)
{
    struct plus_scheduler *sched = plus_scheduler_own;
    bool was_sent = info->si_code <= 0;
    const struct plus_stack *stack =
        sched != NULL && !was_sent ? plus_stack_guard_hit(&sched->stacks, info->si_addr) : NULL;

    if (stack != NULL) {
        say("Fatal Python error: a tasklet has overrun its C stack of ");
        say_kib((size_t)(stack->top - stack->low));
        say(" KiB; see cpythonplus.tasklets.stack_size()\n");
    }
    (void)sigaction(SIGSEGV, &previous, NULL);
    if (was_sent) {
        (void)raise(signal);
    }
}

void
plus_overflow_decline(void)
{
    declined = true;
}

void
plus_overflow_install(void)
{
    static bool installed;
    struct sigaction action = {.sa_sigaction = on_segv, .sa_flags = SA_SIGINFO | SA_ONSTACK};

    if (!installed && !declined) {
        sigemptyset(&action.sa_mask);
        installed = sigaction(SIGSEGV, &action, &previous) == 0;
    }
}

void *
plus_overflow_thread_begin(void)
{
    stack_t stack = {0};

    if (sigaltstack(NULL, &stack) != 0 || !(stack.ss_flags & SS_DISABLE)) {
        return NULL;
    }
    stack.ss_flags = 0;
    stack.ss_size = SIGNAL_STACK_BYTES;
    stack.ss_sp = malloc(stack.ss_size);
    if (stack.ss_sp != NULL && sigaltstack(&stack, NULL) != 0) {
        free(stack.ss_sp);
        stack.ss_sp = NULL;
    }
    return stack.ss_sp;
}

void
plus_overflow_thread_end(void *signal_stack)
{
    stack_t now = {0}, none = {.ss_flags = SS_DISABLE};

    if (signal_stack == NULL) {
        return;
    }
    if (sigaltstack(NULL, &now) == 0 && now.ss_sp == signal_stack) {
        (void)sigaltstack(&none, NULL);
        free(signal_stack);
    } /* else other code has replaced it, and may restore it later */
}
