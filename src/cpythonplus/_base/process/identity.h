/* The identity of a thread, for locks: a number that is never used twice in a family of forked processes.
 *
 * A pthread_t is used again as soon as its thread has ended, so it cannot tell that an owner is gone.  After a fork
 * only the forking thread lives on; a number given before the fork to any other thread belongs to no thread of the
 * child.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Initial-exec: one add instead of a call for each look-up.  It takes a few words of the static TLS
 * block that glibc reserves for libraries loaded later; musl reserves none. */
#if defined(__GLIBC__)
#define PLUS_FAST_TLS __attribute__((tls_model("initial-exec")))
#else
#define PLUS_FAST_TLS
#endif

/* Private; used by the functions below. */
extern _Thread_local uint64_t plus_identity_own PLUS_FAST_TLS;
extern _Thread_local unsigned long plus_identity_pthread PLUS_FAST_TLS;
uint64_t
plus_identity_make(void);

/* The calling thread's number, never 0.  With or without the GIL. */
static inline uint64_t
plus_identity(void)
{
    uint64_t own = plus_identity_own;

    return __builtin_expect(own != 0, 1) ? own : plus_identity_make();
}

/* The calling thread's pthread_t as a number, which is threading.get_ident(); 0 before the first call
 * of plus_identity(). */
static inline unsigned long
plus_identity_ident(void)
{
    return plus_identity_pthread;
}

/* Sets what a thread calls when it has got its number; to be called before a second thread has one.  NULL: nothing. */
void
plus_identity_on_make(void (*callback)(void));

/* True if a fork left this number's thread behind in the parent. */
bool
plus_identity_is_gone(uint64_t identity);

/* Incremented by each fork that led to this process: state of an earlier generation was copied while its other users
 * vanished. */
extern uint32_t plus_fork_generation; /* written in the child of a fork, by its only thread */

/* To be called in the child of a fork. */
void
plus_identity_atfork_child(void);
