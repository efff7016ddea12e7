/* statistics() of each type, and acquire_timeout(): their results are Python classes. */
#include "statistics_py.h" /* Python.h first: it sets the feature macros */

#include "../_base/raise.h"

const char plus_statistics_doc[] =
    "statistics($self, /)\n--\n\n"
    "Return the WaitStatistics of this object: how often and how long threads waited.";

const char plus_acquire_timeout_doc[] =
    "acquire_timeout($self, timeout, /)\n--\n\n"
    "Return a context manager that acquires for at most `timeout` seconds.\n\n"
    "`with lock.acquire_timeout(0.5) as acquired:` runs its block in either case and\n"
    "releases at the end what was acquired.";

PyObject *
plus_statistics(const struct plus_wait_counts *counts)
{
    return plus_call_from(
        "cpythonplus.threads._stats", "WaitStatistics", "(IIIIIIKK)", counts->waits,
        counts->contended, counts->timeouts, counts->spins, counts->spins_paid, counts->hand_overs,
        (unsigned long long)counts->total_ns, (unsigned long long)counts->longest_ns);
}

PyObject *
plus_statistics_of(struct plus_waitq *queue)
{
    struct plus_wait_counts counts = plus_waitq_counts(queue);

    return plus_statistics(&counts);
}

void
plus_counts_add(struct plus_wait_counts *sum, const struct plus_wait_counts *more)
{
    sum->waits += more->waits;
    sum->contended += more->contended;
    sum->timeouts += more->timeouts;
    sum->spins += more->spins;
    sum->spins_paid += more->spins_paid;
    sum->hand_overs += more->hand_overs;
    sum->total_ns += more->total_ns;
    if (more->longest_ns > sum->longest_ns) {
        sum->longest_ns = more->longest_ns;
    }
}

PyObject *
plus_acquire_timeout(PyObject *self, PyObject *timeout)
{
    return plus_call_from("cpythonplus.threads._holding", "AcquireTimeout", "(OO)", self, timeout);
}
