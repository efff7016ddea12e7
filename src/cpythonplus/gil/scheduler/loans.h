/* Whom a thread is served as while it has what lighter threads wait for (priority inheritance).
 *
 * A lender names the thing by the word that tells its owner, and lends its own level until the owner lets
 * go of the thing or the lender waits no more.  A few loans are kept for each thread; one more is
 * refused, which costs the lender time and nothing else.
 *
 * All functions are called under the GIL's mutex; only `loan_count` is read without it, by the thread
 * itself.
 */
#ifndef PLUS_GIL_LOANS_H
#define PLUS_GIL_LOANS_H

#include "thread.h"

/* The best level lent to the thread; PLUS_LEVELS if none is. */
unsigned
plus_loans_level(const struct plus_thread *thread);

/* One more lends for `thing`.  False: no room. */
bool
plus_loans_add(struct plus_thread *thread, const _Atomic uint64_t *thing, unsigned level);

/* What was lent for `thing` counts for more, since somebody waits for the lender in turn; it ends with
 * that lender.  False: nothing was lent. */
bool
plus_loans_raise(struct plus_thread *thread, const _Atomic uint64_t *thing, unsigned level);

/* One lender less. */
void
plus_loans_take_back(struct plus_thread *thread, const _Atomic uint64_t *thing);

/* Forgets all that was lent for `thing`. */
void
plus_loans_end(struct plus_thread *thread, const _Atomic uint64_t *thing);

#endif
