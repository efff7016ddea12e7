/* The threads of the agent, and when they are there.
 *
 *             start()                       stop(), before_fork()                 joined
 *     OFF ----------------> RUNNING -----------------------------> STOPPING ----------------> OFF
 *                              |   idle for too long, or `leave`: retire()                     ^
 *                              +---------------------------------------------------------------+
 *
 *     keeper      the program's descriptors     sleeps until a request is to be answered, and starts a thread for it;
 *                                               joins the listener when that ends by itself
 *     listener    descriptors of its own        has the socket: accepts, reads, parses, sends; one client at a time
 *     worker      the program's descriptors     calls `answer`, which takes the GIL by itself; nothing else here knows of it
 *
 * - The program is not to see our descriptors, in itself or in its children, so the listener has a table of its own
 *   (agent_socket.h).  An answer cannot be made there: it runs Python, and with it whatever code of the program's an object
 *   has that dies meanwhile, which would close its descriptors in the wrong table.  A thread that has the program's table
 *   must be started by one that has it.  So somebody has to wait there: the keeper, with a small stack.
 * - `lock` is never held while anybody waits: who stops gives it back for the join, and STOPPING keeps the others off.
 *   A second one who stops waits for `told`; one who starts finds that it is not OFF, and changes nothing.
 * - Who stops says so first (`stopping`) and wakes the listener then, which looks at `stopping` between any two steps.
 *   Who stops must not have the GIL: the answer that is waited for may need it.
 * - The listener ends by itself only while RUNNING; then the keeper is detached.  Is it STOPPING, somebody joins the keeper.
 * - A thread that asks for the end from inside of an answer (a finalizer that forks) would wait for itself: it ends nothing.
 * - Where the listener has no table of its own, the program may have closed our descriptors.  If nothing can wake it then,
 *   the threads are left behind, asleep, and none is started again (`lost`).
 *
 * Fork.  Before: all threads end, so that no lock of theirs is held and CPython counts none; `pauses` counts the forks
 * that are going on.  The socket and a client live on: the listener puts its descriptors into `box`, a socket that is in the
 * program's table until the next listener has taken them out, and what it knows of the client stays in `agent.client`.  A
 * listener makes a step for its client even if it is to end again, so that a program which does nothing else than to fork is
 * answered, too.  Parent: the last of the forks starts the threads again, if they are `wanted`.  Child: let_go() makes the lock
 * anew (some thread of the parent may have held it) and closes the box and the parent's socket, if it has it at all, without
 * shutting it down; threads of its own are started where the agent is there for ever, unless another thread than the main one forked.  C
 * code that forks past Python's hooks is noticed by the number of the process, at the next call.
 *
 * Rejected: a pipe or an eventfd to wake the listener, which the others cannot reach; pthread_cancel, which would end a
 * thread inside Python; answering in the listener; handing the client's descriptor to another thread, where the program
 * would see it. */
#define _GNU_SOURCE
#include "agent.h"

#include "../../_base/process/clock.h"
#include "../../_base/process/own_thread.h"
#include "agent_socket.h"

#include <errno.h>
#include <fcntl.h>
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
#include <sys/uio.h>
#include <unistd.h>

#define REQUEST_TIMEOUT_MS 5000 /* for a client to ask, and to ask again */
#define SEND_TIMEOUT_MS 10000   /* for it to take a part of the answer */
#define PAUSE_MS 200            /* where accepting fails for want of descriptors */
#define AWAKE_TIMEOUT_MS 200
#define STACK_BYTES (128 * 1024)

#define PENDING 1 /* the listener has not opened its socket yet */

enum state { OFF, RUNNING, STOPPING };

/* A request that the listener waits for, and what the worker makes of it; lies on the listener's stack. */
struct job {
    const struct plus_request *request;
    char *bytes; /* NULL: there is no answer */
    size_t length;
    bool failed, done;
    bool without_worker; /* no thread could be started for it */
};

#define HEAD 5

/* A client, and how far it is served.  The listener's; of others while there is none. */
struct client {
    struct plus_own_fd fd;
    char request[PLUS_REQUEST_MAX]; /* what has come of the next one */
    size_t request_length;
    char head[HEAD];
    char *answer; /* NULL: none is on its way; of malloc, or `refusal` */
    char refusal[192];
    size_t length, sent; /* of the answer; of head and answer */
    bool last;           /* there will be no further answer */
    uint64_t deadline_ns;
};

/* `lock` guards what has no other word; it is held for a few instructions only. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t told; /* whenever `state`, `opened`, `job`, what it says, or `listens` changes */
    enum state state;
    bool wanted; /* to be started again after a fork; in children only where it stays for ever */
    bool lost;   /* a thread that cannot be woken is left behind: never again */
    unsigned pauses; /* forks that are going on */
    pid_t process;   /* whose threads and socket these are */
    struct plus_own_thread keeper, listener;
    struct job *job;          /* NULL: none */
    bool listens;             /* the listener has not ended */
    int opened;               /* 0 or -errno of the socket; PENDING */
    plus_agent_answer answer; /* this and the next two are written before the threads start */
    int idle_ms;
    struct plus_own_fd probe; /* plus_fd_table_leave() */
    char runtime_folder[sizeof((struct sockaddr_un *)NULL)
                            ->sun_path]; /* $XDG_RUNTIME_DIR or empty */
    struct plus_agent_socket socket;     /* written by the listener, before `opened` */
    struct client client;
    struct plus_mailbox box; /* what the listener leaves to the next one; no descriptor: nothing */
    bool left;               /* by the listener: it is in the box */
    atomic_bool stopping;    /* read by the threads between any two steps */
    atomic_bool leave;       /* set by the listener */
    /* A thread other than the program's main one forked this process or one that it comes from.  Then nothing returns
     * from main() here: the process ends when its last thread does, and ours would keep it for ever. */
    bool ends_with_last_thread;
} agent = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .told = PTHREAD_COND_INITIALIZER,
    .probe = {-1, 0, 0},
    .client.fd = {-1, 0, 0},
    .box.fd = {-1, 0, 0},
};

static _Thread_local bool forks_from_thread; /* this thread forks, and is not the main one */
static _Thread_local bool answers;           /* this thread is a worker that makes an answer */

/* ---- one client ---------------------------------------------------------------------------------- */

static int
open_socket(void)
{
    return plus_agent_socket_open(&agent.socket,
                                  agent.runtime_folder[0] != '\0' ? agent.runtime_folder : NULL);
}

static void
drop_client(void)
{
    plus_own_fd_close(&agent.client.fd);
    if (agent.client.answer != agent.client.refusal) {
        free(agent.client.answer);
    }
    agent.client.answer = NULL;
}

/* Waits until the client's socket is ready for `events`.  False: it is too late, or the threads are to end. */
static bool
wait_for(short events)
{
    while (!atomic_load(&agent.stopping) && plus_own_fd_is_ours(&agent.client.fd)) {
        uint64_t now = plus_now_ns();
        if (now >= agent.client.deadline_ns) {
            return false;
        }
        int left_ms = (int)((agent.client.deadline_ns - now) / PLUS_NS_PER_MS) + 1;
        if (plus_agent_socket_poll(&agent.socket, agent.client.fd.fd, events, left_ms) > 0) {
            return true;
        }
    }
    return false;
}

static void
set_deadline(uint64_t limit_ms)
{
    agent.client.deadline_ns = plus_now_ns() + limit_ms * PLUS_NS_PER_MS;
}

static void
set_answer(bool failed, char *bytes, size_t length)
{
    struct client *client = &agent.client;

    client->head[0] = failed ? '1' : '0';
    for (int i = 1; i < HEAD; i++) {
        client->head[i] = (char)(unsigned char)(length >> (8 * (HEAD - 1 - i)));
    }
    client->answer = bytes;
    client->length = length;
    client->sent = 0;
    set_deadline(SEND_TIMEOUT_MS);
}

static void
refuse(const char *reason)
{
    struct client *client = &agent.client;

    snprintf(client->refusal, sizeof client->refusal, "{\"error\": \"%.128s\"}", reason);
    client->last = true;
    set_answer(true, client->refusal, strlen(client->refusal));
}

/* False when the client is gone or too slow, or the threads are to end. */
static bool
send_part(void)
{
    struct client *client = &agent.client;
    size_t of_head = client->sent < HEAD ? client->sent : HEAD, of_answer = client->sent - of_head;
    struct iovec parts[2] = {{client->head + of_head, HEAD - of_head},
                             {client->answer + of_answer, client->length - of_answer}};
    const struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    ssize_t sent = sendmsg(client->fd.fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);

    if (sent < 0) {
        return errno == EINTR || (errno == EAGAIN && wait_for(POLLOUT));
    }
    client->sent += (size_t)sent;
    set_deadline(SEND_TIMEOUT_MS);
    if (client->sent == HEAD + client->length) {
        if (client->answer != client->refusal) {
            free(client->answer);
        }
        client->answer = NULL;
        set_deadline(REQUEST_TIMEOUT_MS);
    }
    return true;
}

/* Has the keeper have it answered. */
static void
have_answered(struct job *job)
{
    pthread_mutex_lock(&agent.lock);
    agent.job = job;
    pthread_cond_broadcast(&agent.told);
    while (!job->done) {
        pthread_cond_wait(&agent.told, &agent.lock);
    }
    pthread_mutex_unlock(&agent.lock);
}

static void
answer_request(const struct plus_request *request)
{
    struct job job = {.request = request};

    if (strcmp(request->name, "leave") == 0) {
        atomic_store(&agent.leave, agent.idle_ms != PLUS_AGENT_FOR_EVER);
        agent.client.last = atomic_load(&agent.leave);
        snprintf(agent.client.refusal, sizeof agent.client.refusal, "{}");
        set_answer(false, agent.client.refusal, 2);
        return;
    }
    have_answered(&job);
    if (job.bytes != NULL && job.length <= INT_MAX) {
        set_answer(job.failed, job.bytes, job.length);
        return;
    }
    free(job.bytes);
    refuse(job.without_worker ? "the process cannot start a thread"
                              : "the process is out of memory, or is ending");
}

/* Reads what there is; false when the client is gone or too slow, or the threads are to end. */
static bool
receive(void)
{
    struct client *client = &agent.client;
    ssize_t got = recv(client->fd.fd, client->request + client->request_length,
                       sizeof client->request - client->request_length, MSG_DONTWAIT);

    if (got < 0) {
        return errno == EINTR || (errno == EAGAIN && wait_for(POLLIN));
    }
    client->request_length += (size_t)got;
    /* The dead line is for the whole request: one byte every four seconds is no way to hold the line. */
    return got > 0 && plus_now_ns() <= client->deadline_ns;
}

/* Takes the next step for the client; false when nothing does, or the threads are to end. */
static bool
step(void)
{
    struct client *client = &agent.client;
    struct plus_request request;

    if (!plus_own_fd_is_ours(&client->fd)) {
        return false;
    }
    if (client->answer != NULL) {
        return send_part();
    }
    if (client->last) {
        return false;
    }
    enum plus_request_verdict verdict =
        plus_request_parse(client->request, client->request_length, &request);
    if (verdict == PLUS_REQUEST_MORE) {
        return receive();
    }
    if (verdict != PLUS_REQUEST_WHOLE) {
        refuse(plus_request_reason(verdict));
        return true;
    }
    answer_request(&request);
    client->request_length -= request.used;
    memmove(client->request, client->request + request.used, client->request_length);
    return true;
}

/* ---- the thread that waits for clients ----------------------------------------------------------- */

/* Whether the listener leaves its descriptors to the next one when it is to end: read once it is. */
static bool
is_pausing(void)
{
    return atomic_load(&agent.stopping) && agent.box.fd.fd >= 0;
}

/* Until the client is served, or the threads are to end; then it stays for the next listener. */
static void
serve(void)
{
    while (step() && !atomic_load(&agent.stopping)) {
    }
    if (!is_pausing()) {
        drop_client();
    }
}

static void
serve_new(int fd)
{
    agent.client = (struct client){.fd = plus_own_fd_take(fd)};
    set_deadline(REQUEST_TIMEOUT_MS);
    serve();
}

/* The program has closed our descriptor: a client has found the socket that nobody can accept from. */
static bool
open_again(void)
{
    pthread_mutex_lock(&agent.lock);
    plus_agent_socket_close(&agent.socket);
    bool done = !atomic_load(&agent.stopping) && open_socket() == 0;
    pthread_mutex_unlock(&agent.lock);
    return done;
}

/* Waits for a client; false when there will be none. */
static bool
next_client(int *fd)
{
    *fd = -1;
    if (atomic_load(&agent.stopping)) {
        return false; /* and the datagram that said so may have been read for a client */
    }
    int found =
        plus_agent_socket_poll(&agent.socket, agent.socket.listening.fd, POLLIN, agent.idle_ms);
    if (found == 0 || atomic_load(&agent.stopping)) {
        return false; /* idle for too long, or to end */
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

/* By the listener: says what became of the socket. */
static void
tell_opened(int error)
{
    pthread_mutex_lock(&agent.lock);
    agent.opened = error;
    pthread_cond_broadcast(&agent.told);
    pthread_mutex_unlock(&agent.lock);
}

/* The descriptors that go through the box. */
static struct plus_own_fd *const carried[] = {&agent.socket.listening, &agent.socket.waking.fd,
                                              &agent.client.fd};

/* Takes out of the box what the listener before left.  False: the socket is not there. */
static bool
take_over(struct plus_own_fd box)
{
    bool taken = plus_own_fds_take(&box, carried, 3) &&
                 plus_own_fd_is_ours(&agent.socket.listening) &&
                 plus_own_fd_is_ours(&agent.socket.waking.fd);

    plus_own_fd_close(&box); /* in this table; the keeper does so in the program's */
    if (!taken) {
        plus_agent_socket_close(&agent.socket);
        drop_client();
    }
    return taken;
}

static void
listen_for_clients(struct plus_own_thread *self)
{
    int fd;

    (void)self;
    (void)plus_fd_table_leave(agent.probe.fd, agent.box.fd.fd);
    int error = take_over(agent.box.fd) ? 0 : open_socket();
    tell_opened(error);
    if (plus_own_fd_is_ours(&agent.client.fd)) {
        serve();
    }
    if (error == 0) {
        plus_agent_socket_clean(&agent.socket);
    }
    while (error == 0 && !atomic_load(&agent.leave) && next_client(&fd)) {
        if (fd >= 0 && plus_agent_socket_admits(fd)) {
            serve_new(fd);
        }
        else if (fd >= 0) {
            close(fd);
        }
    }
    agent.left = is_pausing() && plus_own_fds_send(&agent.box, carried, 3);
    if (!agent.left) {
        drop_client();
    }
    pthread_mutex_lock(&agent.lock);
    agent.listens = false;
    pthread_cond_broadcast(&agent.told);
    pthread_mutex_unlock(&agent.lock);
}

/* ---- the thread that has requests answered ------------------------------------------------------- */

static void
work(struct plus_own_thread *self)
{
    struct job *job = agent.job;
    size_t length = 0;
    bool failed = false;

    (void)self;
    answers = true;
    char *bytes = agent.answer(job->request, &length, &failed);
    if (!answers) { /* this is a child that the answer forked: the job is its parent's */
        free(bytes);
        return;
    }
    job->bytes = bytes;
    job->length = length;
    job->failed = failed;
}

/* In a thread of its own: what Python does there needs the stack that the program's threads have.  With the lock held,
 * which it gives back meanwhile. */
static void
answer_job(void)
{
    struct plus_own_thread worker = {.name = "cpythonplus", .run = work};

    pthread_mutex_unlock(&agent.lock);
    bool started = plus_own_thread_start(&worker) == 0;
    if (started) {
        (void)plus_own_thread_join(&worker, PLUS_OWN_THREAD_NO_LIMIT);
    }
    pthread_mutex_lock(&agent.lock);
    agent.job->without_worker = !started;
    agent.job->done = true;
    agent.job = NULL;
    pthread_cond_broadcast(&agent.told);
}

/* With the lock held, without a listener: nothing is left to another one. */
static void
give_up(void)
{
    plus_own_fd_close(&agent.box.fd);
    plus_agent_socket_close(&agent.socket);
    drop_client();
}

/* With the lock held.  Ends by itself: nobody else does, unless stop() is waiting. */
static void
retire(void)
{
    if (agent.state == RUNNING) {
        give_up();
        plus_own_thread_let_go(&agent.keeper);
        agent.state = OFF;
        agent.wanted = agent.wanted && agent.opened < 0; /* behind the next fork it may succeed */
        pthread_cond_broadcast(&agent.told);
    }
}

static void
keep(struct plus_own_thread *self)
{
    (void)self;
    pthread_mutex_lock(&agent.lock);
    while (agent.listens) {
        if (agent.state == RUNNING && agent.opened != PENDING) {
            plus_own_fd_close(&agent.box.fd); /* the listener has taken out what was in it */
        }
        if (agent.job != NULL) {
            answer_job();
        }
        else {
            pthread_cond_wait(&agent.told, &agent.lock);
        }
    }
    if (agent.state == RUNNING) { /* else who stops joins both */
        pthread_mutex_unlock(&agent.lock);
        (void)plus_own_thread_join(&agent.listener, PLUS_OWN_THREAD_NO_LIMIT);
        pthread_mutex_lock(&agent.lock);
        retire();
    }
    pthread_mutex_unlock(&agent.lock);
}

/* ---- starting and stopping ----------------------------------------------------------------------- */

static void
wait_until_opened(void)
{
    while (agent.opened == PENDING) {
        pthread_cond_wait(&agent.told, &agent.lock);
    }
}

/* With the lock held.  Whether there is a socket, the listener tells later. */
static int
start_locked(void)
{
    const char *folder = getenv("XDG_RUNTIME_DIR");

    if (agent.state != OFF || agent.lost) {
        return agent.lost ? -EBUSY : 0;
    }
    atomic_store(&agent.stopping, false);
    agent.job = NULL;
    snprintf(agent.runtime_folder, sizeof agent.runtime_folder, "%s", folder != NULL ? folder : "");
    const struct plus_own_thread thread = {.name = "cpythonplus", .stack_bytes = STACK_BYTES};
    agent.keeper = agent.listener = thread;
    agent.keeper.run = keep;
    agent.listener.run = listen_for_clients;
    int error = plus_own_thread_start(&agent.keeper);
    if (error < 0) {
        give_up();
        return error;
    }
    agent.state = RUNNING;
    agent.process = getpid();
    error = plus_own_thread_start(&agent.listener);
    agent.listens = error == 0;
    agent.opened = error == 0 ? PENDING : error; /* without a listener, the keeper retires */
    return error;
}

/* The same, and waits for the socket, with the lock given back. */
static int
start_and_open(void)
{
    int probe = open("/dev/null", O_RDONLY | O_CLOEXEC);

    agent.probe = probe < 0 ? PLUS_NO_FD : plus_own_fd_take(probe);
    int error = start_locked();
    wait_until_opened();
    while (agent.opened < 0 && agent.state == RUNNING) {
        pthread_cond_wait(&agent.told, &agent.lock);
    }
    plus_own_fd_close(&agent.probe);
    return error < 0 ? error : agent.opened;
}

/* In the child of a fork: the threads are the parent's, and so is the socket. */
static void
let_go(void)
{
    /* Another thread of the parent may have held the lock. */
    agent.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    agent.told = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    plus_agent_socket_forget(&agent.socket);
    plus_own_fd_close(&agent.box.fd);
    if (agent.state != OFF) {
        agent.client.answer = NULL; /* the parent's listener may have been about to free it */
    }
    drop_client();
    atomic_store(&agent.leave, false);
    answers = false;
    agent.state = OFF;
    agent.opened = 0;
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
        atomic_store(&agent.leave, false);
        error = start_and_open();
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

    if (ended) {
        (void)plus_own_thread_join(&agent.keeper, PLUS_OWN_THREAD_NO_LIMIT);
    }
    else {
        plus_own_thread_let_go(&agent.listener);
        plus_own_thread_let_go(&agent.keeper);
    }
    return ended;
}

/* With the lock held; gives it back meanwhile.  pauses: the socket and a client are kept in the box. */
static void
stop_locked(bool pauses)
{
    if (answers) {
        return;
    }
    wait_until_opened();
    while (agent.state == STOPPING) {
        pthread_cond_wait(&agent.told, &agent.lock);
    }
    if (agent.state == OFF) {
        if (!pauses) {
            give_up();
        }
        return;
    }
    plus_own_fd_close(&agent.box.fd); /* of the fork before: the keeper has not come so far */
    agent.left = false;
    if (pauses) {
        agent.box = plus_mailbox_open();
    }
    atomic_store(&agent.stopping, true);
    agent.state = STOPPING;
    bool woken = plus_agent_socket_wake(&agent.socket);
    pthread_mutex_unlock(&agent.lock);
    bool ended = join(woken);
    pthread_mutex_lock(&agent.lock);
    agent.lost = !ended;
    if (!agent.left) {
        give_up();
    }
    agent.state = OFF;
    pthread_cond_broadcast(&agent.told);
}

void
plus_agent_stop(void)
{
    lock_agent();
    agent.wanted = false;
    stop_locked(false);
    pthread_mutex_unlock(&agent.lock);
}

/* Behind a fork the program goes on meanwhile; but where it has our descriptors too, they would take, for a moment, the
 * lowest numbers beside it, which it may expect for itself. */
static void
start_again(void)
{
    if (start_locked() == 0 && plus_fd_table_is_shared()) {
        wait_until_opened();
    }
}

void
plus_agent_before_fork(void)
{
    lock_agent();
    forks_from_thread = syscall(SYS_gettid) != getpid();
    agent.pauses++;
    stop_locked(true);
    pthread_mutex_unlock(&agent.lock);
}

void
plus_agent_after_fork_parent(void)
{
    lock_agent();
    /* uwsgi, for one, forks by itself and calls only what comes afterwards. */
    if (agent.pauses > 0 && --agent.pauses == 0 && agent.wanted) {
        start_again();
    }
    pthread_mutex_unlock(&agent.lock);
}

void
plus_agent_after_fork_child(void)
{
    let_go();
    if (agent.wanted) {
        pthread_mutex_lock(&agent.lock);
        start_again();
        pthread_mutex_unlock(&agent.lock);
    }
}

bool
plus_agent_is_stopping(void)
{
    return atomic_load(&agent.stopping);
}

bool
plus_agent_will_go_on(void)
{
    return agent.pauses > 0 && agent.wanted;
}

const char *
plus_agent_path(void)
{
    lock_agent();
    wait_until_opened();
    pthread_mutex_unlock(&agent.lock);
    return agent.state == RUNNING && agent.process == getpid() ? agent.socket.path : "";
}
