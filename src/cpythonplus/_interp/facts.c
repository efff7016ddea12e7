#include "facts.h"

#include <stdlib.h>

static const struct plus_fact_entry *entries;

static struct {
    enum plus_fact_state state;
    const char *refusal;
    bool probing;
} asked[PLUS_FACTS];

#ifdef PLUS_LIES
ptrdiff_t plus_lies[PLUS_FACTS];
unsigned plus_pretended_version;

ptrdiff_t
plus_lie_of(enum plus_fact fact)
{
    if (asked[fact].state != PLUS_FACT_PROVEN && !asked[fact].probing) {
        fprintf(stderr, "cpythonplus: %s is read, and not proven\n", entries[fact].name);
        abort();
    }
    return plus_lies[fact];
}
#endif

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

void
plus_facts_register(const struct plus_fact_entry *table)
{
    entries = table;
}

const struct plus_fact_entry *
plus_fact_about(enum plus_fact fact)
{
    return &entries[fact];
}

const char *
plus_fact_refusal(enum plus_fact fact)
{
    const struct plus_fact_entry *about = &entries[fact];

    if (asked[fact].state == PLUS_FACT_NOT_ASKED || about->each_interpreter) {
        const char *refusal = ground();

        if (refusal == NULL && (version() < about->from || version() > about->until)) {
            asked[fact].state = PLUS_FACT_ABSENT;
            return NULL;
        }
        asked[fact].probing = true;
        asked[fact].refusal = refusal != NULL ? refusal : about->probe();
        asked[fact].probing = false;
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
