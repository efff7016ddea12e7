/* Import slots of a loaded ELF object: the words through which it calls functions of other objects.
 *
 * An object calls libc through words in its global offset table which the dynamic linker fills in
 * (relocations of type JUMP_SLOT and GLOB_DAT).  Writing another function's address there re-points
 * the calls of that one object and of no other.  No instruction is changed.
 *
 * No function here touches the GIL or knows of Python.  fork: the child's copy of the table keeps the written
 * words.  Callers serialise themselves; the running program reads slots without a lock, since a slot is one
 * aligned word.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* One function may have several slots: one for calls, one for its address taken. */
#define PLUS_SLOTS_PER_SYMBOL 4

struct plus_slot_set {
    const char *symbol; /* set by the caller */
    uintptr_t *addresses[PLUS_SLOTS_PER_SYMBOL];
    uintptr_t originals[PLUS_SLOTS_PER_SYMBOL];    /* the words that plus_slots_write replaced */
    unsigned char readonly[PLUS_SLOTS_PER_SYMBOL]; /* RELRO: read-only again after a write */
    size_t count;
};

/* Finds the slots of `set->symbol` in the object that holds the code address `inside`.
 * Returns 0, -ENOENT when the object does not import the symbol, -ENOSYS when the object or its
 * relocations could not be read (not ELF, unknown relocation format), -E2BIG when there are too
 * many. */
int
plus_slots_find(const void *inside, struct plus_slot_set *set);

/* Writes `target` into every slot and remembers the former words.  Returns 0, or -errno of the mprotect(2) that
 * failed; then nothing has been changed. */
int
plus_slots_write(struct plus_slot_set *set, uintptr_t target);

/* Puts the former word back into each slot that still holds `target`; a slot that other code has written since is
 * left alone.  Returns 0, -EBUSY if one was left alone, or -errno. */
int
plus_slots_restore(struct plus_slot_set *set, uintptr_t target);

/* Returns nonzero if every slot holds `resolved` (the function that this library itself is bound to) or an address
 * in the object's own code (a lazy binding that is not resolved yet).  Returns zero if other code has written a
 * slot. */
int
plus_slots_untouched(const void *inside, const struct plus_slot_set *set, uintptr_t resolved);
