/* The level at which a thread is served while it owns a thing that lighter threads wait for (priority inheritance).
 *
 * A lender names the thing by its owner word, and lends its own level until the owner lets go of the thing or the
 * lender stops waiting.  Each thread has room for a few loans; one more is refused, which costs the lender time and
 * nothing else.
 *
 * All functions are called under the GIL's mutex; only `loan_count` is read without it, by the thread itself.
 */
#pragma once

#include "thread.h"

/* The best level lent to the thread; PLUS_LEVELS if it has no loan. */
unsigned
plus_loans_level(const struct plus_thread *thread);

/* Adds a lender for `thing`.  False: no room. */
bool
plus_loans_add(struct plus_thread *thread, const _Atomic uint64_t *thing, unsigned level);

/* Raises the loan for `thing` to `level`, because another thread waits for the lender; the loan ends with that
 * lender.  False: there is no loan for `thing`. */
bool
plus_loans_raise(struct plus_thread *thread, const _Atomic uint64_t *thing, unsigned level);

/* Removes one lender. */
void
plus_loans_take_back(struct plus_thread *thread, const _Atomic uint64_t *thing);

/* Ends the loan for `thing`. */
void
plus_loans_end(struct plus_thread *thread, const _Atomic uint64_t *thing);
