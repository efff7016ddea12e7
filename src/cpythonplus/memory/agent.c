/* The threads of the agent, and when they are there.
 *
 *             start()                       stop(), before_fork()                 joined
 *     OFF ----------------> RUNNING -----------------------------> STOPPING ----------------> OFF
 *                              |   idle for too long, or `leave`: retire()                     ^
 *                              +---------------------------------------------------------------+
 *
 * - The listener sleeps in poll(2) on the socket.  For a client it makes a second thread and joins it: one client at a
 *   time.  That thread reads, parses and calls `answer`, which takes the GIL by itself; nothing else here knows of it.
 * - `lock` is never held while anybody waits: who stops gives it back for the join, and STOPPING keeps the others off.
 *   A second one who stops waits for `off`; one who starts finds that it is not OFF, and changes nothing.
 * - Who stops says so first (`stopping`) and wakes then: the client's thread by shutdown(2) of its connection, the
 *   listener by that of the socket.  Both look at `stopping` between any two steps.  Who stops must not have the GIL: the
 *   answer that is waited for may need it.
 * - The listener ends by itself only while RUNNING, and is detached then.  Is it STOPPING, somebody joins it.
 * - The program may have closed our descriptors.  Then a connection to the socket wakes the listener, who polls it
 *   still; if not even that is possible, the thread is left behind, asleep, and none is started again (`lost`).
 *
 * Fork.  Before: all threads end, so that no lock of theirs is held and CPython counts none; `pauses` counts the forks
 * that are going on.  Parent: the last of them starts the thread again, if it is `wanted`.  Child: let_go() makes the lock
 * anew (some thread of the parent may have held it) and closes the parent's socket without shutting it down; a thread of
 * its own is started where the agent is there for ever, unless another thread than the main one forked.  C code that forks
 * past Python's hooks is noticed by the number of the process, at the next call.
 *
 * Rejected: a pipe or an eventfd to wake the listener, which is one more descriptor for the program to close; and
 * pthread_cancel, which would end a thread inside Python. */
#define _GNU_SOURCE
#include "agent.h"

#include "../_base/clock.h"
#include "../_base/own_thread.h"
#include "agent_socket.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define REQUEST_TIMEOUT_MS 5000 /* for a client to ask, and to ask again */
#define SEND_TIMEOUT_MS 10000   /* for it to take a part of the answer */
#define PAUSE_MS 200            /* where accepting fails for want of descriptors */
#define AWAKE_TIMEOUT_MS 200
#define STACK_BYTES (128 * 1024)

enum state { OFF, RUNNING, STOPPING };

/* `lock` guards what has no other word; it is held for a few instructions only. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t off; /* told when `state` becomes OFF */
    enum state state;
    bool wanted; /* to be started again after a fork; in children only where it stays for ever */
    bool lost;   /* a thread that cannot be woken is left behind: never again */
    unsigned pauses; /* forks that are going on */
    pid_t process;   /* whose threads and socket these are */
    struct plus_own_thread listener;
    plus_agent_answer answer; /* written before the threads start */
    int idle_ms;              /* the same */
    struct plus_agent_socket socket;
    struct plus_own_fd client; /* written by the listener */
    atomic_bool stopping;      /* read by the threads between any two steps */
    atomic_bool leave;         /* set by the client's thread */
    /* A thread other than the program's main one forked this process or one that it comes from.  Then nothing returns
     * from main() here: the process ends when its last thread does, and ours would keep it for ever. */
    bool ends_with_last_thread;
} agent = {.lock = PTHREAD_MUTEX_INITIALIZER, .off = PTHREAD_COND_INITIALIZER};

static _Thread_local bool forks_from_thread; /* this thread forks, and is not the main one */

/* ---- one client ---------------------------------------------------------------------------------- */

/* Waits until the client's socket is ready for `events`. */
static bool
wait_for(short events, int timeout_ms)
{
    uint64_t deadline = plus_now_ns() + (uint64_t)timeout_ms * PLUS_NS_PER_MS;

    while (!atomic_load(&agent.stopping) && plus_own_fd_is_ours(&agent.client)) {
        uint64_t now = plus_now_ns();
        struct pollfd polled = {.fd = agent.client.fd, .events = events};
        if (now >= deadline) {
            return false;
        }
        int ready = poll(&polled, 1, (int)((deadline - now) / PLUS_NS_PER_MS) + 1);
        if (ready > 0) {
            return true;
        }
        if (ready < 0 && errno != EINTR) {
            return false;
        }
    }
    return false;
}

static bool
send_all(const char *bytes, size_t length)
{
    while (length > 0) {
        if (!wait_for(POLLOUT, SEND_TIMEOUT_MS)) {
            return false;
        }
        ssize_t sent = send(agent.client.fd, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno != EAGAIN && errno != EINTR) {
            return false;
        }
        bytes += sent > 0 ? sent : 0;
        length -= sent > 0 ? (size_t)sent : 0;
    }
    return true;
}

static bool
send_answer(bool failed, const char *bytes, size_t length)
{
    const unsigned char head[5] = {failed ? '1' : '0', (unsigned char)(length >> 24),
                                   (unsigned char)(length >> 16), (unsigned char)(length >> 8),
                                   (unsigned char)length};

    return send_all((const char *)head, sizeof head) && send_all(bytes, length);
}

static void
send_refusal(const char *reason)
{
    char text[192];

    snprintf(text, sizeof text, "{\"error\": \"%.128s\"}", reason);
    (void)send_answer(true, text, strlen(text));
}

static bool
answer_request(const struct plus_request *request)
{
    size_t length = 0;
    bool failed = false;

    if (strcmp(request->name, "leave") == 0) {
        atomic_store(&agent.leave, agent.idle_ms != PLUS_AGENT_FOR_EVER);
        return send_answer(false, "{}", 2);
    }
    char *bytes = agent.answer(request, &length, &failed);
    if (bytes == NULL || length > INT_MAX) {
        send_refusal("the process is out of memory, or is ending");
        free(bytes);
        return false;
    }
    bool sent = send_answer(failed, bytes, length);
    free(bytes);
    return sent;
}

/* Reads what there is; false when the client is gone or too slow. */
static bool
receive(char *bytes, size_t size, size_t *length)
{
    if (!wait_for(POLLIN, REQUEST_TIMEOUT_MS)) {
        return false;
    }
    ssize_t got = recv(agent.client.fd, bytes + *length, size - *length, MSG_DONTWAIT);
    if (got < 0) {
        return errno == EAGAIN || errno == EINTR;
    }
    *length += (size_t)got;
    return got > 0;
}

static void
serve_client(struct plus_own_thread *self)
{
    char bytes[PLUS_REQUEST_MAX];
    size_t length = 0;
    uint64_t deadline = plus_now_ns() + REQUEST_TIMEOUT_MS * PLUS_NS_PER_MS;

    (void)self;
    while (!atomic_load(&agent.stopping) && !atomic_load(&agent.leave)) {
        struct plus_request request;
        enum plus_request_verdict verdict = plus_request_parse(bytes, length, &request);
        if (verdict == PLUS_REQUEST_MORE) {
            /* The dead line is for the whole request: one byte every four seconds is no way to hold the line. */
            if (plus_now_ns() > deadline || !receive(bytes, sizeof bytes, &length)) {
                break;
            }
            continue;
        }
        if (verdict != PLUS_REQUEST_WHOLE) {
            send_refusal(plus_request_reason(verdict));
            break;
        }
        if (!answer_request(&request)) {
            break;
        }
        length -= request.used;
        memmove(bytes, bytes + request.used, length);
        deadline = plus_now_ns() + REQUEST_TIMEOUT_MS * PLUS_NS_PER_MS;
    }
}

/* ---- the thread that waits for clients ----------------------------------------------------------- */

/* In a thread of its own: what Python does there needs the stack that the program's threads have. */
static void
serve(int fd)
{
    struct plus_own_thread worker = {.name = "cpythonplus", .run = serve_client};

    pthread_mutex_lock(&agent.lock);
    agent.client = plus_own_fd_take(fd);
    pthread_mutex_unlock(&agent.lock);
    if (plus_own_thread_start(&worker) == 0) {
        (void)plus_own_thread_join(&worker, PLUS_OWN_THREAD_NO_LIMIT);
    }
    else {
        send_refusal("the process cannot start a thread");
    }
    pthread_mutex_lock(&agent.lock);
    plus_own_fd_close(&agent.client);
    pthread_mutex_unlock(&agent.lock);
}

/* The program has closed our descriptor: a client has found the socket that nobody can accept from. */
static bool
open_again(void)
{
    pthread_mutex_lock(&agent.lock);
    plus_agent_socket_close(&agent.socket);
    bool done = !atomic_load(&agent.stopping) &&
                plus_agent_socket_open(&agent.socket, getenv("XDG_RUNTIME_DIR")) == 0;
    pthread_mutex_unlock(&agent.lock);
    return done;
}

/* Waits for a client; false when there will be none. */
static bool
next_client(int *fd)
{
    struct pollfd polled = {.fd = agent.socket.listening.fd, .events = POLLIN};

    *fd = -1;
    if (poll(&polled, 1, agent.idle_ms) == 0) {
        return false; /* idle for too long */
    }
    if (atomic_load(&agent.stopping)) {
        return false;
    }
    if (!plus_own_fd_is_ours(&agent.socket.listening)) {
        return open_again();
    }
    *fd = accept4(agent.socket.listening.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (*fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)) {
        (void)poll(NULL, 0, PAUSE_MS);
    }
    return true;
}

/* Ends by itself: nobody else does, unless stop() is waiting. */
static void
retire(void)
{
    pthread_mutex_lock(&agent.lock);
    if (agent.state == RUNNING) {
        plus_agent_socket_close(&agent.socket);
        plus_own_thread_let_go(&agent.listener);
        agent.state = OFF;
        agent.wanted = false;
        pthread_cond_broadcast(&agent.off);
    }
    pthread_mutex_unlock(&agent.lock);
}

static void
listen_for_clients(struct plus_own_thread *self)
{
    int fd;

    (void)self;
    while (!atomic_load(&agent.leave) && next_client(&fd)) {
        if (fd >= 0 && plus_agent_socket_admits(fd)) {
            serve(fd);
        }
        else if (fd >= 0) {
            close(fd);
        }
    }
    retire();
}

/* ---- starting and stopping ----------------------------------------------------------------------- */

/* With the lock held. */
static int
start_locked(void)
{
    if (agent.state != OFF || agent.lost) {
        return agent.lost ? -EBUSY : 0;
    }
    atomic_store(&agent.stopping, false);
    atomic_store(&agent.leave, false);
    agent.client = PLUS_NO_FD;
    int error = plus_agent_socket_open(&agent.socket, getenv("XDG_RUNTIME_DIR"));
    if (error < 0) {
        return error;
    }
    /* Not by the listener: beside the program it would take, for a moment, the lowest descriptor, which the program may
     * expect for itself. */
    plus_agent_socket_clean(&agent.socket);
    agent.listener = (struct plus_own_thread){
        .name = "cpythonplus", .run = listen_for_clients, .stack_bytes = STACK_BYTES};
    error = plus_own_thread_start(&agent.listener);
    if (error < 0) {
        plus_agent_socket_close(&agent.socket);
        return error;
    }
    agent.state = RUNNING;
    agent.process = getpid();
    return 0;
}

/* In the child of a fork: the threads are the parent's, and so is the socket. */
static void
let_go(void)
{
    /* Another thread of the parent may have held the lock. */
    agent.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    agent.off = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    if (agent.state != OFF) {
        plus_agent_socket_forget(&agent.socket);
        plus_own_fd_close(&agent.client);
    }
    agent.state = OFF;
    agent.pauses = 0;
    agent.lost = false;
    agent.process = getpid();
    agent.ends_with_last_thread = agent.ends_with_last_thread || forks_from_thread;
    agent.wanted =
        agent.wanted && agent.idle_ms == PLUS_AGENT_FOR_EVER && !agent.ends_with_last_thread;
}

/* C code may fork without calling Python's hooks. */
static void
lock_agent(void)
{
    if (agent.process != 0 && agent.process != getpid()) {
        let_go();
    }
    pthread_mutex_lock(&agent.lock);
}

int
plus_agent_start(plus_agent_answer answer, int idle_ms)
{
    int error = 0;

    lock_agent();
    if (agent.state == OFF) {
        agent.answer = answer;
        agent.idle_ms = idle_ms;
        error = start_locked();
        agent.wanted = error == 0;
    }
    pthread_mutex_unlock(&agent.lock);
    return error;
}

/* A thread that could not be woken may end all the same, if it was awake; else it is left behind, asleep for ever. */
static bool
join(bool woken)
{
    bool ended = plus_own_thread_join(&agent.listener, woken ? PLUS_OWN_THREAD_NO_LIMIT
                                                             : AWAKE_TIMEOUT_MS * PLUS_NS_PER_MS);

    if (!ended) {
        plus_own_thread_let_go(&agent.listener);
    }
    return ended;
}

/* With the lock held; gives it back meanwhile. */
static void
stop_locked(void)
{
    while (agent.state == STOPPING) {
        pthread_cond_wait(&agent.off, &agent.lock);
    }
    if (agent.state == OFF) {
        return;
    }
    atomic_store(&agent.stopping, true);
    agent.state = STOPPING;
    if (plus_own_fd_is_ours(&agent.client)) {
        shutdown(agent.client.fd, SHUT_RDWR);
    }
    bool woken = plus_agent_socket_wake(&agent.socket);
    pthread_mutex_unlock(&agent.lock);
    bool ended = join(woken);
    pthread_mutex_lock(&agent.lock);
    agent.lost = !ended;
    plus_agent_socket_close(&agent.socket);
    agent.state = OFF;
    pthread_cond_broadcast(&agent.off);
}

void
plus_agent_stop(void)
{
    lock_agent();
    agent.wanted = false;
    stop_locked();
    pthread_mutex_unlock(&agent.lock);
}

void
plus_agent_before_fork(void)
{
    lock_agent();
    forks_from_thread = syscall(SYS_gettid) != getpid();
    agent.pauses++;
    stop_locked();
    pthread_mutex_unlock(&agent.lock);
}

void
plus_agent_after_fork_parent(void)
{
    lock_agent();
    /* uwsgi, for one, forks by itself and calls only what comes afterwards. */
    if (agent.pauses > 0 && --agent.pauses == 0 && agent.wanted) {
        (void)start_locked();
    }
    pthread_mutex_unlock(&agent.lock);
}

void
plus_agent_after_fork_child(void)
{
    let_go();
    if (agent.wanted) {
        pthread_mutex_lock(&agent.lock);
        (void)start_locked();
        pthread_mutex_unlock(&agent.lock);
    }
}

bool
plus_agent_will_go_on(void)
{
    return agent.pauses > 0 && agent.wanted;
}

const char *
plus_agent_path(void)
{
    return agent.state == RUNNING && agent.process == getpid() ? agent.socket.path : "";
}
