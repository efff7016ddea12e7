/* Faults, and a handler of theirs for them: what another library in the process may have. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static void *mended;
static size_t mended_bytes;

static void
say(const char *text)
{
    (void)!write(STDERR_FILENO, text, strlen(text));
}

static void
on_segv(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)context;
    if (mended != NULL && info->si_addr == mended) {
        say("mended by theirs\n");
        (void)mprotect(mended, mended_bytes, PROT_READ | PROT_WRITE);
        return;
    }
    say("told by theirs\n");
    _exit(3);
}

void
install(void)
{
    struct sigaction action = {.sa_sigaction = on_segv, .sa_flags = SA_SIGINFO | SA_ONSTACK};

    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, &action, NULL);
}

int
is_default(void)
{
    struct sigaction now;

    return sigaction(SIGSEGV, NULL, &now) == 0 && now.sa_handler == SIG_DFL;
}

/* Writes to a page that their handler makes writable. */
int
fault_and_go_on(void)
{
    mended_bytes = (size_t)sysconf(_SC_PAGESIZE);
    mended = mmap(NULL, mended_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *(volatile char *)mended = 5;
    return *(volatile char *)mended;
}

/* Uses more of the C stack than there is. */
int
overrun(int depth)
{
    volatile char frame[2000];

    frame[0] = (char)depth;
    return overrun(depth + 1) + frame[0];
}

/* Sends the signal with what looks like an address: so far below this frame. */
long
send(long bytes)
{
    char here;
    siginfo_t info = {.si_signo = SIGSEGV, .si_code = SI_QUEUE};

    info.si_addr = &here - bytes;
    return syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), SIGSEGV, &info);
}
