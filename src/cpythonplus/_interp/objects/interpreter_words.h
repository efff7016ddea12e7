/* Words of the interpreter's own state: each may be the address of an object, or any other value.
 *
 * No offset of a field is relied on.  The state is copied through the kernel, and a field is recognised by its
 * contents: the caller compares a word with the objects that it knows, and follows no pointer before.
 *
 * The GIL must be held, and stays so.  Makes no object; takes memory from copy_memory.h: for use in a copy of the
 * process. */
#pragma once

#include "../../_base/compat.h"

struct plus_interpreter_words {
    uintptr_t *words;
    size_t count;
};

/* True if a word is the address of an object with references from outside the objects on the heap. */
typedef bool (*plus_is_held)(uintptr_t word, void *arg);

/* Read the words of this interpreter's state and of the memory behind it; none if they are unreadable.  0, or
 * -ENOMEM. */
int
plus_interpreter_words_read(struct plus_interpreter_words *state);

/* Call `ask` for each word. */
void
plus_interpreter_words_ask(const struct plus_interpreter_words *state, plus_is_held ask, void *arg);

/* Up to 3.13: call `ask` for atexit's functions and their arguments; `callbacks` is atexit._ncallbacks(). */
void
plus_exit_callbacks_ask(const struct plus_interpreter_words *state, unsigned callbacks,
                        plus_is_held ask, void *arg);

/* From 3.12 on: call `ask` for words that may be the callbacks of sys.monitoring. names: those of tools 0 to 5, NULL
 * for none, at least one of them set. */
void
plus_monitoring_callbacks_ask(const struct plus_interpreter_words *state, PyObject *const names[6],
                              plus_is_held ask, void *arg);

/* From 3.12 on: a word behind the address of a static class for which `is_wanted` is true; 0 if there is none. */
uintptr_t
plus_static_type_word(const struct plus_interpreter_words *state, const PyTypeObject *type,
                      plus_is_held is_wanted, void *arg);
