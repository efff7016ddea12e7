/* Which objects lie in given pieces of memory: arenas that are mostly free, and single blocks of the C heap.
 *
 * An object is met by the walk over the heap.  Memory that is no object, such as the table of a dict, is taken for
 * that of an object one of whose own words leads there; what is left over belongs to C code, or to objects that the
 * walk does not see.  With the GIL held all the time; pointers to objects are borrowed. */
#ifndef PLUS_MEMORY_PINS_H
#define PLUS_MEMORY_PINS_H

#include "../../_interp/objects/arenas.h"
#include "own_objects.h"

/* An arena that is looked into, or one block. */
struct plus_pinned {
    uintptr_t start, end;
    bool is_block;
    size_t taken;      /* blocks in it */
    size_t free_bytes; /* that they hold back; of one block, nothing */
};

/* What blocks of one kind are there. */
struct plus_pin {
    PyTypeObject *type; /* NULL: of more types than are told apart */
    bool is_object;     /* else memory that objects of the type refer to */
    size_t blocks, bytes;
    size_t held_bytes; /* each arena's free bytes are shared out equally among its blocks */
    size_t most_bytes; /* that a single one of the blocks holds back */
    PyObject *example; /* that block, or the object that its memory belongs to; NULL with type */
};

struct plus_pins {
    struct plus_pin *list; /* most held bytes first */
    size_t count;
    struct plus_pin unknown; /* blocks that nothing was found for */
    struct plus_pin own;     /* of what the examinations themselves have brought */
    PyObject **owners; /* for each pinned block (is_block) the object that it is of, or NULL */
};

/* Finds out what lies in `pinned`, which is by rising address.  `own`: what is told as the examinations' own; what
 * others refer to, too, is noted there.  0, and the caller frees with plus_pins_free(); -ENOMEM;
 * -ENOTSUP if the heap cannot be walked. */
int
plus_pins_find(struct plus_pins *pins, const struct plus_pinned *pinned, size_t count,
               struct plus_own_objects *own);

void
plus_pins_free(struct plus_pins *pins);

#endif
