/* Words of the interpreter's own state: each may be the address of an object, or anything else.
 *
 * Nothing here relies on where a field lies.  The state is copied through the kernel, and what is found in it is found by what
 * it says: the caller compares a word with the objects that it knows, and follows none before.
 *
 * The GIL must be held, and stays so.  Makes no object; takes memory of copy_memory.h: to be used in a copy of the process. */
#ifndef PLUS_INTERP_INTERPRETER_WORDS_H
#define PLUS_INTERP_INTERPRETER_WORDS_H

#include "../../_base/compat.h"

struct plus_interpreter_words {
    uintptr_t *words;
    size_t count;
};

/* Whether a word is the address of an object that somebody beside the objects on the heap holds. */
typedef bool (*plus_is_held)(uintptr_t word, void *arg);

/* Those of this interpreter, and what lies behind them; none where they cannot be read.  0, or -ENOMEM. */
int
plus_interpreter_words_read(struct plus_interpreter_words *state);

/* Asks about each word. */
void
plus_interpreter_words_ask(const struct plus_interpreter_words *state, plus_is_held ask, void *arg);

/* Up to 3.13: asks about the functions that atexit is to call, and their arguments; `callbacks` is atexit._ncallbacks(). */
void
plus_exit_callbacks_ask(const struct plus_interpreter_words *state, unsigned callbacks,
                        plus_is_held ask, void *arg);

/* From 3.12 on: asks about what may be the functions of sys.monitoring.  names: of tools 0 to 5, NULL for none, and at least one. */
void
plus_monitoring_callbacks_ask(const struct plus_interpreter_words *state, PyObject *const names[6],
                              plus_is_held ask, void *arg);

/* From 3.12 on: the word behind the address of a static class that `is_wanted`; 0: none. */
uintptr_t
plus_static_type_word(const struct plus_interpreter_words *state, const PyTypeObject *type,
                      plus_is_held is_wanted, void *arg);

#endif
