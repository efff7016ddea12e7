/* The threads of the agent, and their life.
 *
 *             start()                       stop(), before_fork()                 joined
 *     OFF ----------------> RUNNING -----------------------------> STOPPING ----------------> OFF
 *                              |   idle for too long, or `leave`: retire()                     ^
 *                              +---------------------------------------------------------------+
 *
 *     keeper      the program's descriptors     sleeps until there is a request, and starts a worker for it;
 *                                               joins the listener when that ends by itself
 *     listener    descriptors of its own        has the socket: accepts, reads, parses, sends; one client at a time
 *     worker      the program's descriptors     calls `answer`, the only code here that takes the GIL
 *
 * - The program must not see our descriptors, in its process or in its children, so the listener has a descriptor
 *   table of its own (agent_socket.h).  An answer cannot be made in the listener.  It runs Python, and a finalizer of
 *   the program may run then and would close its descriptors in the wrong table.  Only a thread with the program's
 *   table can start another one with it, so the keeper waits with the program's table and a small stack.
 * - `lock` is not held while a thread waits for another: stop_locked() releases it for the join, and STOPPING keeps
 *   the other callers off.  A second stop_locked() waits for `told`.  If the state is not OFF, start_locked() changes
 *   nothing.
 * - stop_locked() sets `stopping` first and then wakes the listener, which reads `stopping` between any two steps.
 *   The caller must not hold the GIL, because the answer that it waits for may need it.
 * - If the listener ends by itself while RUNNING, the keeper joins it and is detached (retire()).  While STOPPING,
 *   stop_locked() joins both.
 * - If a worker asks for the end from inside of an answer (a finalizer that forks), it would wait for itself, so
 *   stop_locked() does nothing then.
 * - If the listener has no table of its own, the program may have closed our descriptors.  If nothing can wake the
 *   listener then, the threads are left behind, asleep, and none is started again (`lost`).
 *
 * Before a fork, all threads end, so that none holds a lock and CPython counts none.  `pauses` counts the forks in
 * progress.  The socket and a client live on: the listener puts its descriptors into `box`, a socket that is in the
 * program's table until the next listener has taken them out, and the state of the client stays in `agent.client`.  A
 * listener makes one step for its client even if it is to end at once, so that a program that forks all the time is
 * answered, too.
 *
 * In the parent, the last of the forks starts the threads again, if they are `wanted`.
 *
 * In the child, let_go() makes a new lock (a thread of the parent may have held the old one) and closes the box and
 * the parent's socket without shutdown(2), if they are in its table.  If the agent is there for ever, the child starts
 * its own threads, unless another thread than the main one forked.  If C code forks without Python's hooks, the next
 * call notices the new process id.
 *
 * Rejected: a pipe or an eventfd to wake the listener, which other tables do not have; pthread_cancel(), which would
 * end a thread inside Python; answering in the listener; handing the client's descriptor to another thread, where the
 * program would see it. */
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

#define REQUEST_TIMEOUT_MS 5000 /* for a client to send a request, and the next one */
#define SEND_TIMEOUT_MS 10000   /* for a client to take a part of the answer */
#define PAUSE_MS 200            /* before accepting again, if there are no free descriptors */
#define AWAKE_TIMEOUT_MS 200
#define STACK_BYTES (128 * 1024)

#define PENDING 1 /* the listener has not opened its socket yet */

enum state { OFF, RUNNING, STOPPING };

/* A request that the listener waits for, and the worker's answer; on the listener's stack. */
struct job {
    const struct plus_request *request;
    char *bytes; /* NULL: no answer */
    size_t length;
    bool failed, done;
    bool without_worker; /* no thread could be started */
};

#define HEAD 5

/* A client, and the progress of serving it.  Belongs to the listener, or to the caller that starts or stops it. */
struct client {
    struct plus_own_fd fd;
    char request[PLUS_REQUEST_MAX]; /* the received part of the next request */
    size_t request_length;
    char head[HEAD];
    char *answer; /* NULL: none to send; from malloc, or `refusal` */
    char refusal[192];
    size_t length, sent; /* bytes of the answer; sent bytes of head and answer */
    bool last;           /* close after this answer */
    uint64_t deadline_ns;
};

/* `lock` guards the fields whose comments do not say otherwise; it is held for a few instructions only. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t told; /* changes of `state`, `opened`, `job`, its fields, and `listens` */
    enum state state;
    bool wanted;     /* start again after a fork; in a child only if the agent is there for ever */
    bool lost;       /* a thread that cannot be woken was left behind: never start again */
    unsigned pauses; /* forks in progress */
    pid_t process;   /* the process that started the threads and the socket */
    struct plus_own_thread keeper, listener;
    struct job *job;          /* NULL: none */
    bool listens;             /* the listener has not ended */
    int opened;               /* 0 or -errno of opening the socket; PENDING */
    plus_agent_answer answer; /* this and the next two are written before the threads start */
    int idle_ms;
    struct plus_own_fd probe; /* plus_fd_table_leave() */
    char runtime_folder[sizeof((struct sockaddr_un *)NULL)
                            ->sun_path]; /* $XDG_RUNTIME_DIR or empty */
    struct plus_agent_socket socket;     /* written by the listener, before `opened` */
    struct client client;
    /* During a fork: the socket and a client, for the listener that is started after it.  fd -1: closed. */
    struct plus_mailbox box;
    bool left;            /* written by the listener: the descriptors are in `box` */
    atomic_bool stopping; /* the threads read it between any two steps */
    atomic_bool leave;    /* set by the listener */
    /* This process, or an ancestor, was forked by another thread than the program's main one.  Then nothing returns
     * from main() here: the process ends with its last thread, and ours would keep it alive for ever. */
    bool ends_with_last_thread;
} agent = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .told = PTHREAD_COND_INITIALIZER,
    .probe = {-1, 0, 0},
    .client.fd = {-1, 0, 0},
    .box.fd = {-1, 0, 0},
};

static _Thread_local bool forks_from_thread; /* this thread forks, and is not the main one */
static _Thread_local bool answers;           /* this thread is a worker */

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

/* Waits until the client's socket is ready for `events`.  False: the deadline has passed, or the threads are to end. */
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

/* Returns false if the client is gone or too slow, or the threads are to end. */
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
    /* Hand the job to the keeper and wait for the answer. */
    pthread_mutex_lock(&agent.lock);
    agent.job = &job;
    pthread_cond_broadcast(&agent.told);
    while (!job.done) {
        pthread_cond_wait(&agent.told, &agent.lock);
    }
    pthread_mutex_unlock(&agent.lock);
    if (job.bytes != NULL && job.length <= INT_MAX) {
        set_answer(job.failed, job.bytes, job.length);
        return;
    }
    free(job.bytes);
    refuse(job.without_worker ? "the process cannot start a thread"
                              : "the process is out of memory, or is ending");
}

/* Reads the bytes that are there; false if the client is gone or too slow, or the threads are to end. */
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
    /* The deadline is for the whole request, so a client cannot hold the line with one byte every four seconds. */
    return got > 0 && plus_now_ns() <= client->deadline_ns;
}

/* Takes the next step for the client; false if there is none, or the threads are to end. */
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

/* True if the listener, when it ends, leaves its descriptors to the next one.  Valid once `stopping` is set. */
static bool
is_pausing(void)
{
    return atomic_load(&agent.stopping) && agent.box.fd.fd >= 0;
}

/* Serves the client until it is done, or until the threads are to end; then the next listener goes on with it. */
static void
serve(void)
{
    while (step() && !atomic_load(&agent.stopping)) {
    }
    if (!is_pausing()) {
        drop_client();
    }
}

/* Waits for a client; false if there will be none. */
static bool
next_client(int *fd)
{
    *fd = -1;
    if (atomic_load(&agent.stopping)) {
        return false; /* the waking datagram may have been read while a client was served */
    }
    int found =
        plus_agent_socket_poll(&agent.socket, agent.socket.listening.fd, POLLIN, agent.idle_ms);
    if (found == 0 || atomic_load(&agent.stopping)) {
        return false; /* idle for too long, or to end */
    }
    if (!plus_own_fd_is_ours(&agent.socket.listening)) {
        /* Open the socket anew: the program has closed our descriptor, and a client has come that cannot be
         * accepted. */
        pthread_mutex_lock(&agent.lock);
        plus_agent_socket_close(&agent.socket);
        bool done = !atomic_load(&agent.stopping) && open_socket() == 0;
        pthread_mutex_unlock(&agent.lock);
        return done;
    }
    *fd = accept4(agent.socket.listening.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (*fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)) {
        (void)poll(NULL, 0, PAUSE_MS);
    }
    return true;
}

/* Called by the listener: sets `opened`, and wakes the thread that waits for it. */
static void
tell_opened(int error)
{
    pthread_mutex_lock(&agent.lock);
    agent.opened = error;
    pthread_cond_broadcast(&agent.told);
    pthread_mutex_unlock(&agent.lock);
}

/* The descriptors that the box carries. */
static struct plus_own_fd *const carried[] = {&agent.socket.listening, &agent.socket.waking.fd,
                                              &agent.client.fd};

/* Takes out of the box the descriptors of the listener before.  False: the socket is not there. */
static bool
take_over(struct plus_own_fd box)
{
    bool taken = plus_own_fds_take(&box, carried, 3) &&
                 plus_own_fd_is_ours(&agent.socket.listening) &&
                 plus_own_fd_is_ours(&agent.socket.waking.fd);

    /* Closes the box in this thread's descriptor table; the keeper closes it in the program's. */
    plus_own_fd_close(&box);
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
            agent.client = (struct client){.fd = plus_own_fd_take(fd)};
            set_deadline(REQUEST_TIMEOUT_MS);
            serve();
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
    if (!answers) { /* this is a child that agent.answer() forked: the job is the parent's */
        free(bytes);
        return;
    }
    job->bytes = bytes;
    job->length = length;
    job->failed = failed;
}

/* Makes the answer in a thread of its own, because Python needs a stack of ordinary size.  Called with the lock held,
 * and releases it meanwhile. */
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

/* Closes all that would be left to another listener.  Called with the lock held, without a listener. */
static void
give_up(void)
{
    plus_own_fd_close(&agent.box.fd);
    plus_agent_socket_close(&agent.socket);
    drop_client();
}

/* Ends the keeper, which no other thread joins unless stop_locked() is waiting.  Called with the lock held. */
static void
retire(void)
{
    if (agent.state == RUNNING) {
        give_up();
        plus_own_thread_let_go(&agent.keeper);
        agent.state = OFF;
        agent.wanted = agent.wanted && agent.opened < 0; /* opening may succeed after a fork */
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
            plus_own_fd_close(&agent.box.fd); /* the listener has taken the descriptors out */
        }
        if (agent.job != NULL) {
            answer_job();
        }
        else {
            pthread_cond_wait(&agent.told, &agent.lock);
        }
    }
    if (agent.state == RUNNING) { /* else stop_locked() joins both threads */
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

/* Called with the lock held.  The listener sets `opened` later. */
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

/* Like start_locked(), but waits for the socket, with the lock released. */
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

/* Called in the child of a fork: the threads and the socket are the parent's. */
static void
let_go(void)
{
    /* A thread of the parent may have held the lock. */
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

/* Takes the lock.  C code may fork without Python's hooks, so this looks for a new process first. */
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

/* Joins the threads.  A listener that could not be woken may end all the same if it was awake; otherwise it is left
 * behind, asleep for ever. */
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

/* Called with the lock held, and releases it meanwhile. pauses: keep the socket and a client in the box. */
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
    plus_own_fd_close(&agent.box.fd); /* of the fork before; the keeper has not closed it yet */
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

/* Called after a fork; the program goes on while the listener opens its socket.  If the program's table has our
 * descriptors, wait: the listener takes, for a moment, the lowest free numbers, which the program may expect for
 * itself. */
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
    /* uwsgi, for one, forks in C and calls only the hooks for after a fork. */
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
