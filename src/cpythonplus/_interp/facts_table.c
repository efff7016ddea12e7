/* The facts and their probes, which are beside the readers. facts.c gets this table when the extension is loaded: so
 * all readers may ask facts.c, and it does not depend on them. */
#include "facts/facts.h"
#include "facts/probes.h"

/* A free-threaded build has other structures, or none: of these facts no reader is called there. */
#ifdef Py_GIL_DISABLED
#define WITH_GIL(probe) NULL
#else
#define WITH_GIL(probe) probe
#endif

/* The columns: number, name, first and last version, content, proof, features that need it, probe; then other fields. */
#define FACT(number, words, first, last, content, how, rooms, ...)                                 \
    [PLUS_FACT_##number] = {.name = words,                                                         \
                            .from = first,                                                         \
                            .until = last,                                                         \
                            .what = content,                                                       \
                            .proof = how,                                                          \
                            .features = rooms,                                                     \
                            .probe = __VA_ARGS__}

const struct plus_fact_entry plus_fact_table[PLUS_FACTS] = {
    FACT(GC_HEADER, "gc-header", 0x030B, 0x030F,
         "two words in front of an object that the collector knows",
         "an object is tracked, untracked and tracked again", "census, doctor, prefork",
         WITH_GIL(plus_probe_gc_header)),
    FACT(GC_RINGS, "gc-rings", 0x030B, 0x030F, "the collector's lists, frozen objects included",
         "a new object leads to them; their thresholds are those of gc", "census, doctor, caches",
         WITH_GIL(plus_probe_gc_rings), .each_interpreter = true),
    FACT(FRAMES, "frames", 0x030B, 0x030F, "the frames of running functions",
         "a function is called, and its frame compared with its frame object",
         "tasklets, census, doctor, prefork, memory.helpers, "
         "gil.stalls, threads.waits",
         plus_probe_frames),
    FACT(OPERANDS, "operands", 0x030B, 0x030F, "what lies on a frame's operand stack",
         "a call with known operands is looked at from inside", "tasklets",
         WITH_GIL(plus_probe_operands)),
    FACT(FRAME_BUILDING, "frame-building", 0x030B, 0x030F,
         "frames that are built and go on in the middle of their functions",
         "one is built and read, then another goes on, and its result compared",
         "tasklets: pickle, copy", WITH_GIL(plus_probe_frame_building)),
    FACT(ITERTOOLS, "itertools", 0x030B, 0x030F, "how far an iterator of itertools has got",
         "one of each class is stepped and read, and another one set",
         "tasklets: pickles and copies with such iterators", WITH_GIL(plus_probe_itertools)),
    FACT(THREAD_STATE, "thread-state", 0x030B, 0x030F,
         "fields of a thread state that a switch of tasklets exchanges",
         "context, handled exception and depth are changed and compared", "tasklets",
         plus_probe_thread_state),
    FACT(INSTRUMENTATION, "instrumentation", 0x030C, 0x030F,
         "the number of the last change of monitoring events",
         "events are restarted, and code that runs then has the number", "tasklets",
         WITH_GIL(plus_probe_instrumentation)),
    FACT(FRAME_TRACING, "frame-tracing", 0x030B, 0x030B, "what a frame object says about tracing",
         "f_trace_opcodes is set and compared", "tasklets.run_for",
         WITH_GIL(plus_probe_frame_tracing)),
    FACT(DICT_KEYS, "dict-keys", 0x030B, 0x030F, "the table of a dict's keys",
         "the sizes of dicts that are made are compared with __sizeof__",
         "census, doctor, memory.key_sharing", plus_probe_dict_keys),
    FACT(INLINE_VALUES, "inline-values", 0x030B, 0x030F,
         "attributes of an instance that has no dict",
         "an instance is made and its attributes compared",
         "census, doctor, memory.key_sharing, prefork", plus_probe_inline_values),
    FACT(OBJECT_SIZES, "object-sizes", 0x030B, 0x030F,
         "where numbers, strings, lists and sets note their sizes",
         "compared with sys.getsizeof for one of each", "census, doctor", plus_probe_object_sizes),
    FACT(DICT_VERSION, "dict-version", 0x030B, 0x030B, "a number that changes with a dict",
         "it changes with one that is made, and not when that is read", "threads",
         WITH_GIL(plus_probe_dict_version)),
    FACT(POOLS, "pools", 0x030B, 0x030F, "pymalloc's pools of blocks and their headers",
         "blocks are taken and given back, and the header followed",
         "memory.resident, memory.trim, prefork", WITH_GIL(plus_probe_pools)),
    FACT(ARENAS, "arenas", 0x030B, 0x030F, "pymalloc's table of arenas",
         "each arena's numbers agree with the headers of its pools", "memory.resident",
         WITH_GIL(plus_probe_arenas)),
    FACT(IMMORTAL, "immortal", 0x030C, 0x030F, "the count that is never changed",
         "an object that is made for it is counted, made immortal, and is not", "prefork",
         WITH_GIL(plus_probe_immortal)),
};
