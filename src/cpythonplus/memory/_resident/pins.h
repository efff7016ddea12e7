/* Finds the objects in given pieces of memory: arenas that are mostly free, and single blocks of the C heap.
 *
 * The walk over the heap meets the objects.  Memory that is no object, such as the table of a dict, is attributed to
 * an object that has its address in a word of its own.  The remaining blocks belong to C code, or to objects that the
 * walk does not meet.  The GIL is held throughout; pointers to objects are borrowed. */
#pragma once

#include "../../_interp/objects/arenas.h"
#include "own_objects.h"

/* An arena that is looked into, or one block. */
struct plus_pinned {
    uintptr_t start, end;
    bool is_block;
    size_t taken;      /* blocks in it */
    size_t free_bytes; /* free bytes that these blocks pin; 0 for a single block */
};

/* The sums of blocks of one kind. */
struct plus_pin {
    PyTypeObject *type; /* NULL: all types beyond the limit */
    bool is_object;     /* else memory that objects of the type refer to */
    size_t blocks, bytes;
    size_t held_bytes; /* each arena's free bytes are shared out equally among its blocks */
    size_t most_bytes; /* held by a single one of the blocks */
    PyObject *example; /* the object of that block, or the owner of its memory; NULL with type */
};

struct plus_pins {
    struct plus_pin *list; /* most held bytes first */
    size_t count;
    struct plus_pin unknown; /* blocks of unknown owners */
    struct plus_pin own;     /* blocks of the examinations themselves */
    PyObject **owners;       /* by pinned piece: for a block (is_block) its object, or NULL */
};

/* Finds the objects in `pinned`, which is sorted by address. own: the objects of the examinations; strings that other
 * objects refer to are noted there.  0, and the caller frees with plus_pins_free(); -ENOMEM; -ENOTSUP if the heap
 * cannot be walked. */
int
plus_pins_find(struct plus_pins *pins, const struct plus_pinned *pinned, size_t count,
               struct plus_own_objects *own);

void
plus_pins_free(struct plus_pins *pins);
