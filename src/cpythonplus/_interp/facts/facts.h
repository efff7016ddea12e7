/* What this package takes for granted of CPython's private structures, and whether it is so in this interpreter.
 *
 * Each fact is a reader (the rest of this room), a probe and the text of its refusal.  A probe makes objects for the
 * purpose, reads them, and compares with what the public API says of the same; one for a structure that is written
 * writes into objects of its own only.  It reads memory through the kernel until that is known to be there.
 *
 *     feature -> plus_fact_refusal(fact) -> proven: its readers may be called
 *                                        -> refused: the text, and the feature says so or goes on without
 *
 * A fact is proven once, at the first question; gc_rings once for each interpreter that asks.  A signal handler that
 * raises meanwhile does so behind the proof; one that had no memory is made again by the next question.  A minor version that
 * nobody has tested is refused without a probe: what moved there may look alike.
 *
 * All with the GIL held; no exception may be set before, none is afterwards.
 */
#ifndef PLUS_INTERP_FACTS_H
#define PLUS_INTERP_FACTS_H

#include "../../_base/compat.h"

#include <stddef.h>

enum plus_fact {
    PLUS_FACT_GC_HEADER,
    PLUS_FACT_GC_RINGS,
    PLUS_FACT_FRAMES,
    PLUS_FACT_OPERANDS,
    PLUS_FACT_FRAME_BUILDING,
    PLUS_FACT_ITERTOOLS,
    PLUS_FACT_THREAD_STATE,
    PLUS_FACT_INSTRUMENTATION,
    PLUS_FACT_FRAME_TRACING,
    PLUS_FACT_DICT_KEYS,
    PLUS_FACT_INLINE_VALUES,
    PLUS_FACT_OBJECT_SIZES,
    PLUS_FACT_DICT_VERSION,
    PLUS_FACT_POOLS,
    PLUS_FACT_ARENAS,
    PLUS_FACT_IMMORTAL,
    PLUS_FACTS
};

/* The first and the last version whose structures are known, as in PY_VERSION_HEX >> 16. */
#define PLUS_OLDEST_KNOWN 0x030B
#define PLUS_NEWEST_KNOWN 0x030F

struct plus_fact_entry {
    const char *name;     /* a word */
    unsigned from, until; /* versions that have it, as above; `until` is the last one */
    const char *what;     /* the structure */
    const char *proof;    /* how the probe proves it */
    const char *features; /* what is refused, or goes on without, where it does not hold */
    /* NULL, or why its readers must not be called; an exception that it leaves has interrupted it.  Without one if the
     * build does not have it. */
    const char *(*probe)(void);
    bool each_interpreter; /* has to be asked in */
};

/* The table of PLUS_FACTS entries, which stays; when the extension is loaded, before anything else here is called. */
void
plus_facts_register(const struct plus_fact_entry *table);

const struct plus_fact_entry *
plus_fact_about(enum plus_fact fact);

/* NULL: it holds, or this version does not have it; else why it does not. */
const char *
plus_fact_refusal(enum plus_fact fact);

/* Makes a proof that is no fact's: NULL, or why not.  If *is_final is false then, it said nothing, and may be asked again. */
const char *
plus_fact_prove(const char *(*probe)(void), bool *is_final);

/* The first refusal among `count` facts, or NULL. */
const char *
plus_facts_refusal(const enum plus_fact *facts, size_t count);

enum plus_fact_state {
    PLUS_FACT_NOT_ASKED,
    PLUS_FACT_PROVEN,
    PLUS_FACT_REFUSED,
    PLUS_FACT_ABSENT, /* another version has it */
};

/* Without a probe. */
enum plus_fact_state
plus_fact_state(enum plus_fact fact, const char **refusal);

/* In builds for tests/interp/test_lies.py a fact can be made false: what is read of its structure then lies so many
 * bytes further on than it is.  And whoever reads it before it is proven, or when it is refused, ends the process.
 * Elsewhere this is 0, and the compiler drops it. */
#ifdef PLUS_LIES
extern ptrdiff_t plus_lies[PLUS_FACTS];
extern unsigned plus_pretended_version; /* 0: what it is */
ptrdiff_t
plus_lie_of(enum plus_fact fact);
#define PLUS_LIE(fact) plus_lie_of(fact)
#else
#define PLUS_LIE(fact) 0
#endif

/* The structure at `pointer`. */
#define PLUS_AT(fact, pointer)                                                                     \
    ((__typeof__(pointer))((uintptr_t)(pointer) + (uintptr_t)PLUS_LIE(fact)))

#endif
