/* The state of each descriptor of a thread, and its registration in the kernel.
 *
 * A wait registers the descriptor first, then checks for an edge that has come already, then parks.  In this order an
 * event between the caller's try and the wait is found either by the check or in the queue.
 *
 *   UNREGISTERED   The kernel knows nothing of it.
 *   STAYS          Sockets of ours: edges of all kinds, until plus_poller_forget().  An edge that no tasklet waits for
 *                  is kept in `readable` and `writable`, and given to the next wait, once.  `drained`: the last read
 *                  took all that there was, and no edge has come since; the next read may wait without a try.
 *                  `partial`: a short read no longer implies `drained`, since the other side has ended or sent urgent
 *   data. ONCE           Any other descriptor: one event, for all that is waited for at the moment.  When it has come,
 *                  the events that other tasklets still wait for are requested again.
 *
 * A descriptor number may be reused for another file.  `serial` tells the files apart: the kernel returns it with each
 * event, so an event of the former file is dropped, and a wait whose serial has changed ends with EBADF.
 * plus_poller_forget() is called before the file is closed, by any thread, and tells all threads.
 *
 * An event wakes all tasklets that wait for it, and they try again.
 *
 * The table grows while tasklets wait, so no pointer into it is used after a wait.
 *
 * fork: the child makes new descriptors, and registers everything again.  If the child has closed a descriptor, the
 * tasklets that wait for it are woken.  The poller of a thread that is gone still has the parent's descriptors, and its
 * registrations stay.
 */
#include "poller.h"
#include "../scheduling/loop.h"
#include "../scheduling/parking.h"

#include "../../_base/process/clock.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define AT_ONCE 256
#define HIGHEST_DESCRIPTOR (1 << 24)
#define ENDED (EPOLLHUP | EPOLLERR | EPOLLRDHUP)
#define EVERYTHING (EPOLLIN | EPOLLPRI | EPOLLOUT | EPOLLRDHUP | EPOLLET)
#define OURS UINT64_C(0xffffffff)

/* The queues of a descriptor: tasklets that wait to read, to write, or for whichever comes first. */
enum { READING, WRITING, EITHER, QUEUES };

static const char *const waits[QUEUES] = {
    "waiting to read from descriptor", "waiting to write to descriptor", "waiting for descriptor"};

enum { UNREGISTERED, STAYS, ONCE };

struct watched {
    struct plus_channel *queues[QUEUES]; /* made when first needed */
    uint32_t serial;                     /* of the file that the number refers to */
    uint8_t kind;
    bool readable, writable; /* an edge has come that no tasklet waited for */
    bool drained, partial;   /* see above */
};

struct plus_poller {
    struct plus_scheduler *sched;
    int epoll_fd, event_fd, timer_fd;
    uint32_t generation; /* of the process that made them */
    uint64_t armed_ns;   /* deadline that the timer is set to */
    struct watched *watched;
    uint32_t room;
};

/* ---- life ------------------------------------------------------------------------------------- */

static int
watch_own(struct plus_poller *poller, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = OURS << 32 | (uint32_t)fd};

    return fd < 0 ? -1 : epoll_ctl(poller->epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

static bool
open_descriptors(struct plus_poller *poller)
{
    poller->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    poller->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    poller->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    poller->armed_ns = PLUS_NO_DEADLINE;
    poller->generation = plus_fork_generation;
    return poller->epoll_fd >= 0 && watch_own(poller, poller->event_fd) == 0 &&
           watch_own(poller, poller->timer_fd) == 0;
}

static void
close_one(int fd)
{
    if (fd >= 0) {
        close(fd);
    }
}

static void
close_descriptors(struct plus_poller *poller)
{
    close_one(poller->epoll_fd);
    close_one(poller->event_fd);
    close_one(poller->timer_fd);
}

struct plus_poller *
plus_poller_get(struct plus_scheduler *sched)
{
    if (sched->io.poller != NULL) {
        return sched->io.poller;
    }
    struct plus_poller *poller = calloc(1, sizeof(*poller));

    if (poller == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    poller->sched = sched;
    if (!open_descriptors(poller)) {
        PyErr_SetFromErrno(PyExc_OSError); /* servers that accept connections check its errno */
        close_descriptors(poller);
        free(poller);
        return NULL;
    }
    sched->io.poller = poller;
    return poller;
}

void
plus_poller_free(struct plus_poller *poller)
{
    if (poller == NULL) {
        return;
    }
    for (uint32_t i = 0; i < poller->room; i++) {
        for (int j = 0; j < QUEUES; j++) {
            Py_XDECREF(poller->watched[i].queues[j]);
        }
    }
    close_descriptors(poller);
    free(poller->watched);
    free(poller);
}

int
plus_poller_descriptor(const struct plus_poller *poller)
{
    return poller->epoll_fd;
}

/* ---- tasklets and their events ---------------------------------------------------------------- */

/* Returns the state of a descriptor, or NULL. */
static struct watched *
find(struct plus_poller *poller, int fd)
{
    return fd >= 0 && (uint32_t)fd < poller->room ? &poller->watched[fd] : NULL;
}

static struct watched *
find_or_make(struct plus_poller *poller, int fd)
{
    struct watched *watched = find(poller, fd);

    if (watched != NULL) {
        return watched;
    }
    if (fd < 0 || fd > HIGHEST_DESCRIPTOR) {
        PyErr_SetString(PyExc_ValueError, "not a file descriptor");
        return NULL;
    }
    uint32_t room = poller->room + 64 > (uint32_t)fd * 2 ? poller->room + 64 : (uint32_t)fd * 2;
    struct watched *more = realloc(poller->watched, room * sizeof(*more));

    if (more == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    memset(more + poller->room, 0, (room - poller->room) * sizeof(*more));
    poller->watched = more;
    poller->room = room;
    return &more[fd];
}

static int
queue_for(int events)
{
    return events == PLUS_IO_READ ? READING : events == PLUS_IO_WRITE ? WRITING : EITHER;
}

static bool
is_waited_for(const struct watched *watched, int which)
{
    return watched->queues[which] != NULL && watched->queues[which]->head != NULL;
}

static bool
wake_all(struct watched *watched, int which)
{
    bool any = is_waited_for(watched, which);

    while (is_waited_for(watched, which)) {
        plus_unpark(watched->queues[which]->head);
    }
    return any;
}

static int
tell_kernel(struct plus_poller *poller, int fd, struct watched *watched, uint32_t events);

/* Returns the events that the waiting tasklets wait for, and `events`. */
static uint32_t
wanted(const struct watched *watched, int events)
{
    uint32_t all = (uint32_t)events;

    all |= is_waited_for(watched, READING) ? EPOLLIN : 0;
    all |= is_waited_for(watched, WRITING) ? EPOLLOUT : 0;
    all |= is_waited_for(watched, EITHER) ? EPOLLIN | EPOLLOUT : 0;
    return all;
}

/* The one event is used up: requests the events that tasklets still wait for. */
static void
ask_again(struct plus_poller *poller, int fd, struct watched *watched)
{
    uint32_t events = wanted(watched, 0);

    if (events != 0 && tell_kernel(poller, fd, watched, events | EPOLLONESHOT) < 0) {
        PyErr_Clear(); /* the tasklets get the error when they try again */
        (void)(wake_all(watched, READING) + wake_all(watched, WRITING));
    }
}

static void
handle(struct plus_poller *poller, int fd, struct watched *watched, uint32_t events)
{
    bool ended = (events & ENDED) != 0;

    /* After the end no edge comes for data that is left to read; and a read stops before urgent data. */
    if (ended || (events & EPOLLPRI)) {
        watched->partial = true;
    }
    bool either = wake_all(watched, EITHER);

    if ((events & (EPOLLIN | EPOLLPRI)) || ended) {
        watched->drained = false;
        watched->readable = !wake_all(watched, READING) && !either;
    }
    if ((events & EPOLLOUT) || ended) {
        watched->writable = !wake_all(watched, WRITING) && !either;
    }
    if (watched->kind == ONCE) {
        ask_again(poller, fd, watched);
    }
}

static void
handle_all(struct plus_poller *poller, const struct epoll_event *events, int count)
{
    for (int i = 0; i < count; i++) {
        uint32_t serial = (uint32_t)(events[i].data.u64 >> 32), fd = (uint32_t)events[i].data.u64;

        if (serial == OURS) {
            uint64_t number;
            ssize_t got = read((int)fd, &number, sizeof(number));

            (void)got; /* an empty descriptor is fine as well */
            if ((int)fd == poller->timer_fd) {
                poller->armed_ns = PLUS_NO_DEADLINE;
            }
        }
        else if (fd < poller->room && poller->watched[fd].serial == serial) {
            handle(poller, (int)fd, &poller->watched[fd], events[i].events);
        }
    }
}

void
plus_poller_look(struct plus_poller *poller)
{
    struct epoll_event events[AT_ONCE];
    int count;

    do {
        count = epoll_wait(poller->epoll_fd, events, AT_ONCE, 0);
        handle_all(poller, events, count);
    } while (count == AT_ONCE);
}

void
plus_poller_wait(struct plus_poller *poller, uint64_t deadline_ns)
{
    struct epoll_event events[AT_ONCE];
    int count;

    plus_poller_arm(poller, deadline_ns);
    poller->sched->io.sleeps = true;
    plus_stacks_settle(&poller->sched->stacks);
    Py_BEGIN_ALLOW_THREADS
    count = epoll_wait(poller->epoll_fd, events, AT_ONCE, -1);
    Py_END_ALLOW_THREADS
    poller->sched->io.sleeps = false;
    handle_all(poller, events, count);
}

void
plus_poller_rouse(struct plus_poller *poller)
{
    uint64_t one = 1;
    ssize_t put = write(poller->event_fd, &one, sizeof(one));

    (void)put; /* fails if the counter is full: it is readable then */
}

void
plus_poller_arm(struct plus_poller *poller, uint64_t deadline_ns)
{
    if (deadline_ns >= poller->armed_ns) {
        return; /* an earlier time is harmless */
    }
    struct itimerspec at = {
        .it_value = {.tv_sec = (time_t)(deadline_ns / PLUS_NS_PER_S),
                     .tv_nsec = (long)(deadline_ns % PLUS_NS_PER_S)},
    };

    if (timerfd_settime(poller->timer_fd, TFD_TIMER_ABSTIME, &at, NULL) == 0) {
        poller->armed_ns = deadline_ns;
    }
}

/* ---- waiting ---------------------------------------------------------------------------------- */

/* Returns 0, or -1 with OSError: a regular file, for example, cannot be waited for. */
static int
tell_kernel(struct plus_poller *poller, int fd, struct watched *watched, uint32_t events)
{
    struct epoll_event event = {.events = events,
                                .data.u64 = (uint64_t)watched->serial << 32 | (uint32_t)fd};
    int first = watched->kind == UNREGISTERED ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
    int rc = epoll_ctl(poller->epoll_fd, first, fd, &event);

    /* The file was closed and opened again, or registered by another number. */
    if (rc < 0 && errno == (first == EPOLL_CTL_ADD ? EEXIST : ENOENT)) {
        int second = first == EPOLL_CTL_ADD ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;

        rc = epoll_ctl(poller->epoll_fd, second, fd, &event);
    }
    if (rc < 0) {
        PyErr_SetFromErrno(PyExc_OSError);
    }
    return rc;
}

static int
subscribe(struct plus_poller *poller, int fd, struct watched *watched, int events, bool stays)
{
    if (!stays) {
        if (tell_kernel(poller, fd, watched, wanted(watched, events) | EPOLLONESHOT) < 0) {
            return -1;
        }
        watched->kind = ONCE;
        return 0;
    }
    if (watched->kind != STAYS) {
        watched->readable = watched->writable = watched->drained = watched->partial = false;
        if (tell_kernel(poller, fd, watched, EVERYTHING) < 0) {
            return -1;
        }
        watched->kind = STAYS;
    }
    return 0;
}

/* Takes edges that came after the caller's try and before its wait; each is reported once. */
static int
take_ready(struct watched *watched, int events)
{
    int ready = 0;

    if ((events & PLUS_IO_READ) && watched->readable) {
        watched->readable = false;
        ready |= PLUS_IO_READ;
    }
    if ((events & PLUS_IO_WRITE) && watched->writable) {
        watched->writable = false;
        ready |= PLUS_IO_WRITE;
    }
    return ready;
}

static int
raise_closed(void)
{
    errno = EBADF;
    PyErr_SetFromErrno(PyExc_OSError);
    return -1;
}

/* The second part of plus_poller_await(): no Python code runs in it before the tasklet waits. */
static int
await(struct plus_scheduler *sched, int fd, int events, uint64_t deadline_ns, bool stays,
      bool again)
{
    struct plus_poller *poller = sched->io.poller;
    struct watched *watched = &poller->watched[fd];
    int which = queue_for(events), ready;
    uint32_t serial = watched->serial;

    if (again && subscribe(poller, fd, watched, events, stays) < 0) {
        return -1; /* subscribed again, since its one event may have come already */
    }
    if (stays && (ready = take_ready(watched, events)) != 0) {
        return ready;
    }
    if (watched->queues[which] == NULL) {
        watched->queues[which] = plus_waiters_make(waits[which]);
    }
    if (watched->queues[which] == NULL) {
        return -1;
    }
    watched->queues[which]->descriptor = fd;
    enum plus_parked parked = plus_park(sched, watched->queues[which], deadline_ns, false, NULL);

    if (parked == PLUS_PARKED_RAISED) {
        return -1;
    }
    if (serial != poller->watched[fd].serial) { /* the table may have grown */
        return raise_closed();
    }
    return parked == PLUS_PARKED_TIMED_OUT ? 0 : events;
}

static bool
is_ready(void *arg)
{
    return poll(arg, 1, 0) != 0;
}

/* Used in a signal handler; returns as await(). */
static int
await_beside(int fd, int events, uint64_t deadline_ns)
{
    struct pollfd asked = {.fd = fd,
                           .events = (short)((events & PLUS_IO_READ ? POLLIN : 0) |
                                             (events & PLUS_IO_WRITE ? POLLOUT : 0))};
    int over = plus_wait_beside(is_ready, &asked, deadline_ns);

    if (over == 1 && (asked.revents & POLLNVAL)) {
        return raise_closed();
    }
    return over == 1 ? events : over;
}

/* While the event loop is made, other threads run, which may close the descriptor, and perhaps other tasklets.  A
 * descriptor that cannot be waited for makes no loop: the event loop itself may be asking. */
int
plus_poller_await(struct plus_scheduler *sched, int fd, int events, uint64_t deadline_ns,
                  bool stays)
{
    if (sched->in_handler) {
        return await_beside(fd, events, deadline_ns);
    }
    struct plus_poller *poller = plus_poller_get(sched);
    struct watched *watched = poller != NULL ? find_or_make(poller, fd) : NULL;
    int ready = -1;

    if (watched == NULL || subscribe(poller, fd, watched, events, stays) < 0) {
        return -1;
    }
    bool made = sched->loop.hub == NULL;
    uint32_t serial = watched->serial;
    struct plus_tasklet *task = sched->running;

    sched->io.waiting++;
    task->awaits = true;
    if (plus_loop_ensure(sched) == 0) {
        ready = serial == poller->watched[fd].serial
                    ? await(sched, fd, events, deadline_ns, stays, made)
                    : raise_closed();
    }
    task->awaits = false;
    sched->io.waiting--;
    return ready;
}

/* ---- sockets of ours -------------------------------------------------------------------------- */

bool
plus_poller_is_drained(struct plus_scheduler *sched, int fd)
{
    struct watched *watched = sched->io.poller != NULL ? find(sched->io.poller, fd) : NULL;

    return watched != NULL && watched->drained;
}

void
plus_poller_set_drained(struct plus_scheduler *sched, int fd)
{
    struct watched *watched = sched->io.poller != NULL ? find(sched->io.poller, fd) : NULL;

    if (watched != NULL && watched->kind == STAYS && !watched->partial) {
        watched->drained = true;
        watched->readable = false;
    }
}

void
plus_poller_note_urgent(int fd)
{
    for (struct plus_scheduler *sched = plus_schedulers; sched != NULL;
         sched = sched->next_scheduler) {
        struct watched *watched = sched->io.poller != NULL ? find(sched->io.poller, fd) : NULL;

        if (watched != NULL) {
            watched->partial = true;
            watched->drained = false;
        }
    }
}

static void
forget(struct plus_poller *poller, int fd, struct watched *watched)
{
    /* In the child of a fork, the pollers of threads that are gone have the parent's epoll descriptors. */
    if (watched->kind != UNREGISTERED && poller->generation == plus_fork_generation) {
        struct epoll_event unused;

        (void)epoll_ctl(poller->epoll_fd, EPOLL_CTL_DEL, fd, &unused);
    }
    watched->kind = UNREGISTERED;
    watched->serial = (watched->serial + 1) % (uint32_t)OURS;
    watched->readable = watched->writable = watched->drained = watched->partial = false;
    for (int i = 0; i < QUEUES; i++) {
        (void)wake_all(watched, i);
    }
}

void
plus_poller_forget(int fd)
{
    for (struct plus_scheduler *sched = plus_schedulers; sched != NULL;
         sched = sched->next_scheduler) {
        struct watched *watched = sched->io.poller != NULL ? find(sched->io.poller, fd) : NULL;

        if (watched != NULL) {
            forget(sched->io.poller, fd, watched);
        }
    }
}

/* ---- fork ------------------------------------------------------------------------------------- */

static void
watch_again(struct plus_poller *poller, int fd, struct watched *watched)
{
    uint8_t kind = watched->kind;
    uint32_t events = kind == STAYS ? EVERYTHING : wanted(watched, 0) | EPOLLONESHOT;

    watched->kind = UNREGISTERED;
    if (kind == UNREGISTERED || (kind == ONCE && wanted(watched, 0) == 0)) {
        return;
    }
    watched->drained = false;
    if (tell_kernel(poller, fd, watched, events) == 0) {
        watched->kind = kind;
    }
    else { /* closed in the child already: its tasklets are woken and get the error */
        PyErr_Clear();
        forget(poller, fd, watched);
    }
}

void
plus_poller_after_fork(struct plus_scheduler *sched)
{
    struct plus_poller *poller = sched->io.poller;

    if (poller == NULL) {
        return;
    }
    close_descriptors(poller);
    sched->io.sleeps = false;
    if (!open_descriptors(poller)) {
        Py_FatalError("no descriptors for a poller in the child of a fork");
    }
    for (uint32_t fd = 0; fd < poller->room; fd++) {
        watch_again(poller, (int)fd, &poller->watched[fd]);
    }
}
