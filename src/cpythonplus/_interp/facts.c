#include "facts.h"

#include "probes.h"

#ifdef PLUS_LIES
ptrdiff_t plus_lies[PLUS_FACTS];
unsigned plus_pretended_version;
#endif

const struct plus_fact_description plus_fact_descriptions[PLUS_FACTS] = {
    [PLUS_FACT_GC_HEADER] = {"gc-header", 0x030B, 0x030F,
                             "two words in front of an object that the collector knows",
                             "an object is tracked, untracked and tracked again",
                             "census, doctor, prefork"},
    [PLUS_FACT_GC_RINGS] = {"gc-rings", 0x030B, 0x030F,
                            "the collector's lists, frozen objects included",
                            "a new object leads to them; their thresholds are those of gc",
                            "census, doctor, caches, prefork"},
    [PLUS_FACT_FRAMES] = {"frames", 0x030B, 0x030F, "the frames of running functions",
                          "a function is called, and its frame compared with its frame object",
                          "tasklets, census, doctor, prefork, memory.helpers"},
    [PLUS_FACT_OPERANDS] = {"operands", 0x030B, 0x030F, "what lies on a frame's operand stack",
                            "a call with known operands is looked at from inside", "tasklets"},
    [PLUS_FACT_THREAD_STATE] = {"thread-state", 0x030B, 0x030F,
                                "fields of a thread state that a switch of tasklets exchanges",
                                "context, handled exception and depth are changed and compared",
                                "tasklets"},
    [PLUS_FACT_INSTRUMENTATION] = {"instrumentation", 0x030C, 0x030F,
                                   "the number of the last change of monitoring events",
                                   "events are restarted, and code that runs then has the number",
                                   "tasklets"},
    [PLUS_FACT_FRAME_TRACING] = {"frame-tracing", 0x030B, 0x030B,
                                 "what a frame object says about tracing",
                                 "f_trace_opcodes is set and compared", "tasklets.run_for"},
    [PLUS_FACT_DICT_KEYS] = {"dict-keys", 0x030B, 0x030F, "the table of a dict's keys",
                             "the sizes of dicts that are made are compared with __sizeof__",
                             "census, doctor, memory.key_sharing"},
    [PLUS_FACT_INLINE_VALUES] = {"inline-values", 0x030B, 0x030F,
                                 "attributes of an instance that has no dict",
                                 "an instance is made and its attributes compared",
                                 "census, doctor, memory.key_sharing"},
    [PLUS_FACT_OBJECT_SIZES] = {"object-sizes", 0x030B, 0x030F,
                                "where numbers, strings, lists and sets note their sizes",
                                "compared with sys.getsizeof for one of each", "census, doctor"},
    [PLUS_FACT_DICT_VERSION] = {"dict-version", 0x030B, 0x030B, "a number that changes with a dict",
                                "it changes with one that is made, and not when that is read",
                                "threads"},
    [PLUS_FACT_POOLS] = {"pools", 0x030B, 0x030F, "pymalloc's pools of blocks and their headers",
                         "blocks are taken and given back, and the header followed",
                         "memory.resident, memory.trim, prefork"},
    [PLUS_FACT_ARENAS] = {"arenas", 0x030B, 0x030F, "pymalloc's table of arenas",
                          "each arena's numbers agree with the headers of its pools",
                          "memory.resident"},
    [PLUS_FACT_IMMORTAL] = {"immortal", 0x030C, 0x030F, "the count that is never changed",
                            "an object that is made for it is counted, made immortal, and is not",
                            "prefork"},
};

static const struct {
    const char *(*probe)(void);
    bool each_interpreter; /* it has to be asked in */
} probes[PLUS_FACTS] = {
    [PLUS_FACT_GC_HEADER] = {plus_probe_gc_header},
    [PLUS_FACT_GC_RINGS] = {plus_probe_gc_rings, true},
    [PLUS_FACT_FRAMES] = {plus_probe_frames},
    [PLUS_FACT_OPERANDS] = {plus_probe_operands},
    [PLUS_FACT_THREAD_STATE] = {plus_probe_thread_state},
    [PLUS_FACT_INSTRUMENTATION] = {plus_probe_instrumentation},
    [PLUS_FACT_FRAME_TRACING] = {plus_probe_frame_tracing},
    [PLUS_FACT_DICT_KEYS] = {plus_probe_dict_keys},
    [PLUS_FACT_INLINE_VALUES] = {plus_probe_inline_values},
    [PLUS_FACT_OBJECT_SIZES] = {plus_probe_object_sizes},
    [PLUS_FACT_DICT_VERSION] = {plus_probe_dict_version},
    [PLUS_FACT_POOLS] = {plus_probe_pools},
    [PLUS_FACT_ARENAS] = {plus_probe_arenas},
    [PLUS_FACT_IMMORTAL] = {plus_probe_immortal},
};

static struct {
    enum plus_fact_state state;
    const char *refusal;
} asked[PLUS_FACTS];

static unsigned
version(void)
{
#ifdef PLUS_LIES
    if (plus_pretended_version != 0) {
        return plus_pretended_version;
    }
#endif
    return (unsigned)(Py_Version >> 16);
}

/* Why nothing at all is known here, or NULL. */
static const char *
ground(void)
{
    static char text[96];

#ifdef Py_GIL_DISABLED
    return PLUS_FREE_THREADED;
#endif
    if (version() < PLUS_OLDEST_KNOWN || version() > PLUS_NEWEST_KNOWN) {
        snprintf(text, sizeof text, "nobody has tested this with the structures of Python %u.%u",
                 version() >> 8, version() & 0xff);
        return text;
    }
    if (Py_Version >> 16 != PY_VERSION_HEX >> 16) {
        return "this extension was compiled for another version of Python";
    }
    return NULL;
}

const char *
plus_fact_refusal(enum plus_fact fact)
{
    if (asked[fact].state == PLUS_FACT_NOT_ASKED || probes[fact].each_interpreter) {
        const struct plus_fact_description *about = &plus_fact_descriptions[fact];
        const char *refusal = ground();

        if (refusal == NULL && (version() < about->from || version() > about->until)) {
            asked[fact].state = PLUS_FACT_ABSENT;
            return NULL;
        }
        asked[fact].refusal = refusal != NULL ? refusal : probes[fact].probe();
        asked[fact].state = asked[fact].refusal != NULL ? PLUS_FACT_REFUSED : PLUS_FACT_PROVEN;
    }
    return asked[fact].refusal;
}

const char *
plus_facts_refusal(const enum plus_fact *facts, size_t count)
{
    const char *refusal = NULL;

    for (size_t i = 0; i < count && refusal == NULL; i++) {
        refusal = plus_fact_refusal(facts[i]);
    }
    return refusal;
}

enum plus_fact_state
plus_fact_state(enum plus_fact fact, const char **refusal)
{
    *refusal = asked[fact].refusal;
    return asked[fact].state;
}
