/* The offsets of the fields of an interpreter's state change with each version and sometimes with a patch release.  The
 * order of a few of them does not:
 *
 *     atexit       the address of an array, then how many of it are in use, and how many there is room for (32 bits each).
 *                  The array has addresses of a function, its arguments and its keywords.  3.14 has a list.
 *     monitoring   functions by tool and event, then the names of the tools
 *     classes      the address of a static class, then a few words of what it has in this interpreter
 *
 * Why not by the private headers: the value that is read has to be verified in any case, and then the offset adds
 * nothing. */
#include "interpreter_words.h"

#include "../../_base/memory/copy_memory.h"
#include "../../_base/memory/own_memory.h"
#include "../../_base/memory/page.h"

#define MOST_BYTES ((size_t)1 << 20) /* of a state, which contains pymalloc's from 3.12 on */
#define MOST_CALLBACKS (1u << 20)
#define MOST_EVENTS 24
#define TOOLS 8
#define NAMED_TOOLS 6
#define OF_A_CLASS 8 /* words */

int
plus_interpreter_words_read(struct plus_interpreter_words *state)
{
    uintptr_t begin = (uintptr_t)PyInterpreterState_Get();
    size_t bytes = 0, page = plus_page_bytes();

    *state = (struct plus_interpreter_words){plus_malloc(MOST_BYTES), 0};
    if (state->words == NULL) {
        return -ENOMEM;
    }
    while (bytes < MOST_BYTES &&
           plus_read_memory(begin + bytes, (char *)state->words + bytes, page)) {
        bytes += page;
    }
    state->count = bytes / sizeof *state->words;
    return 0;
}

void
plus_interpreter_words_ask(const struct plus_interpreter_words *state, plus_is_held ask, void *arg)
{
    for (size_t i = 0; i < state->count; i++) {
        if (state->words[i] != 0) {
            (void)ask(state->words[i], arg);
        }
    }
}

struct callback {
    uintptr_t function, arguments, keywords;
};

/* Read the `count` callbacks of the array at the address `array`; a removed one is read as zeros.  False if the words
 * there are not callbacks. */
static bool
read_callbacks(uintptr_t array, unsigned count, uintptr_t *addresses, struct callback *callbacks)
{
    if (array % sizeof array != 0 ||
        !plus_read_memory(array, addresses, count * sizeof *addresses)) {
        return false;
    }
    for (unsigned i = 0; i < count; i++) {
        callbacks[i] = (struct callback){0, 0, 0};
        if (addresses[i] != 0 &&
            !plus_read_memory(addresses[i], &callbacks[i], sizeof callbacks[i])) {
            return false;
        }
    }
    return true;
}

void
plus_exit_callbacks_ask(const struct plus_interpreter_words *state, unsigned callbacks,
                        plus_is_held ask, void *arg)
{
    if (callbacks == 0 || callbacks > MOST_CALLBACKS) {
        return;
    }
    uintptr_t *addresses = plus_malloc(callbacks * sizeof *addresses);
    struct callback *found = plus_malloc(callbacks * sizeof *found);

    for (size_t i = 0; addresses != NULL && found != NULL && i + 1 < state->count; i++) {
        uint64_t counts = state->words[i + 1];
        if ((uint32_t)counts != callbacks || counts >> 32 < callbacks ||
            counts >> 32 > MOST_CALLBACKS ||
            !read_callbacks(state->words[i], callbacks, addresses, found)) {
            continue;
        }
        for (unsigned at = 0; at < callbacks; at++) {
            (void)ask(found[at].function, arg);
            (void)ask(found[at].arguments, arg);
            (void)ask(found[at].keywords, arg);
        }
    }
    plus_free(addresses);
    plus_free(found);
}

void
plus_monitoring_callbacks_ask(const struct plus_interpreter_words *state, PyObject *const names[6],
                              plus_is_held ask, void *arg)
{
    size_t before = TOOLS * MOST_EVENTS;

    for (size_t i = before; i + NAMED_TOOLS <= state->count; i++) {
        bool same = true;
        for (size_t tool = 0; tool < NAMED_TOOLS; tool++) {
            same = same && state->words[i + tool] == (uintptr_t)names[tool];
        }
        for (size_t at = i - before; same && at < i; at++) {
            (void)ask(state->words[at], arg);
        }
    }
}

uintptr_t
plus_static_type_word(const struct plus_interpreter_words *state, const PyTypeObject *type,
                      plus_is_held is_wanted, void *arg)
{
    for (size_t i = 0; i < state->count; i++) {
        for (size_t at = i + 1;
             state->words[i] == (uintptr_t)type && at < state->count && at <= i + OF_A_CLASS;
             at++) {
            if (is_wanted(state->words[at], arg)) {
                return state->words[at];
            }
        }
    }
    return 0;
}
