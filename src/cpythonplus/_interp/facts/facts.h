/* The assumptions of this package about CPython's private structures, and whether they hold in this interpreter.
 *
 * Each fact has readers (the other folders of _interp), a probe and the text of its refusal.  A probe makes its own
 * objects, reads them, and compares with the answers of the public API; the probe of a structure that is written writes
 * only to its own objects.  It reads memory through the kernel until that is known to be valid.
 *
 *     feature -> plus_fact_refusal(fact) -> proven: its readers may be called
 *                                        -> refused: the text, and the feature says so or goes on without
 *
 * A fact is proven once, at the first question; gc_rings once for each interpreter that asks.  If a signal handler
 * raises meanwhile, its exception is raised after the proof; a proof without enough memory is made again at the next
 * question.  A minor version that has not been tested is refused without a probe: a moved field may look alike.
 *
 * GIL held; no exception may be set before, and none is set afterwards.
 */
#pragma once

#include "../../_base/compat.h"

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

/* The first and the last version with known structures, as in PY_VERSION_HEX >> 16. */
#define PLUS_OLDEST_KNOWN 0x030B
#define PLUS_NEWEST_KNOWN 0x030F

struct plus_fact_entry {
    const char *name;     /* one word */
    unsigned from, until; /* versions that have the structure, as above; `until` is the last one */
    const char *what;     /* the structure */
    const char *proof;    /* how the probe proves the structure */
    const char *features; /* the features that are refused or reduced if the fact does not hold */
    /* NULL, or the reason why its readers must not be called; an exception that it leaves has interrupted it.  The
     * pointer is NULL if the build does not have the structure. */
    const char *(*probe)(void);
    bool each_interpreter; /* must be asked in each interpreter */
};

/* Register the table of PLUS_FACTS entries, which is not copied.  Must precede all other calls, when the extension is
 * loaded. */
void
plus_facts_register(const struct plus_fact_entry *table);

const struct plus_fact_entry *
plus_fact_about(enum plus_fact fact);

/* NULL if the fact holds, or this version does not have the structure; else the reason why it does not hold. */
const char *
plus_fact_refusal(enum plus_fact fact);

/* Run a proof that belongs to no fact: NULL, or the reason why it failed.  If *is_final is false, there was no result,
 * and the proof may be run again. */
const char *
plus_fact_prove(const char *(*probe)(void), bool *is_final);

/* The first refusal among `count` facts, or NULL. */
const char *
plus_facts_refusal(const enum plus_fact *facts, size_t count);

enum plus_fact_state {
    PLUS_FACT_NOT_ASKED,
    PLUS_FACT_PROVEN,
    PLUS_FACT_REFUSED,
    PLUS_FACT_ABSENT, /* this version does not have it */
};

/* All facts (../facts_table.c), for plus_facts_register(). */
extern const struct plus_fact_entry plus_fact_table[PLUS_FACTS];

/* The state, without running a probe. */
enum plus_fact_state
plus_fact_state(enum plus_fact fact, const char **refusal);

/* In builds for tests/interp/test_lies.py a fact can be made false: its structure is then read at an address that is
 * wrong by the given number of bytes.  And a reader that is called before the proof, or after a refusal, ends the
 * process.  In other builds this is 0, and the compiler removes it. */
#ifdef PLUS_LIES
extern ptrdiff_t plus_lies[PLUS_FACTS];
extern unsigned plus_pretended_version; /* 0: the real version */
ptrdiff_t
plus_lie_of(enum plus_fact fact);
#define PLUS_LIE(fact) plus_lie_of(fact)
#else
#define PLUS_LIE(fact) 0
#endif

/* The structure at `pointer`. */
#define PLUS_AT(fact, pointer)                                                                     \
    ((__typeof__(pointer))((uintptr_t)(pointer) + (uintptr_t)PLUS_LIE(fact)))
