/* The handler runs on the alternate stack; all that it calls is async-signal-safe. */
#define _GNU_SOURCE /* sigaltstack */
#include "overflow.h"

#include "task.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SIGNAL_STACK_BYTES ((size_t)32 << 10) /* faulthandler runs on it too */

static struct sigaction previous;

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
    const struct plus_stack *stack =
        sched != NULL ? plus_stack_guard_hit(&sched->stacks, info->si_addr) : NULL;

    if (stack != NULL) {
        say("Fatal Python error: a tasklet has overrun its C stack of ");
        say_kib((size_t)(stack->top - stack->low));
        say(" KiB; see cpythonplus.tasklets.stack_size()\n");
    }
    /* The instruction is run again, fails again, and goes where it would have gone. */
    (void)sigaction(SIGSEGV, &previous, NULL);
    if (info->si_code <= 0) {
        (void)raise(signal); /* somebody sent it: no instruction failed, nothing would come back */
    }
}

void
plus_overflow_install(void)
{
    static bool installed;
    struct sigaction action = {.sa_sigaction = on_segv, .sa_flags = SA_SIGINFO | SA_ONSTACK};

    if (!installed) {
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
    } /* else somebody has replaced it, and may put it back */
}
