/* What a census adds up: objects and bytes by class, by the module that functions, code and classes are from, and by
 * the size of blocks.
 *
 * All with the GIL held.  Nothing of Python is made: what is counted is known by its address, and must not go
 * before plus_tally_hold() or the end of the tally. */
#ifndef PLUS_MEMORY_TALLY_H
#define PLUS_MEMORY_TALLY_H

#include "../../_base/compat.h"
#include "../../_base/memory/granules.h"
#include "../../_base/memory/record_table.h"
#include "../../_interp/objects/object_parts.h"

#include <stddef.h>

#define PLUS_SMALL_CLASSES 33 /* 0, and pymalloc's: 16, 32 ... 512 */
#define PLUS_SIZE_CLASSES 88  /* then 1024, 2048 ... */

struct plus_sum {
    Py_ssize_t objects, bytes;
};

/* Of one class.  A dict counts for `self` of dict, and for `owned` of it if it is that of an instance, a module or a
 * class, whose `dicts` it is. */
struct plus_class_tally {
    PyTypeObject *type;
    struct plus_measuring how;
    unsigned role;
    struct plus_sum self, owned;
    struct plus_sum dicts;     /* of the instances */
    struct plus_sum itself;    /* the class as an object: 1 or 0 */
    Py_ssize_t own_dict_bytes; /* of its namespace */
};

/* Of what belongs to a module: a namespace, or a file's name. */
struct plus_place_tally {
    PyObject *place;
    struct plus_sum self;  /* functions and modules that have the namespace; code of the file */
    struct plus_sum dicts; /* of the functions */
    bool is_module;        /* some module has the namespace */
    Py_ssize_t own_bytes;  /* the namespace itself; if is_module */
};

struct plus_tally {
    struct plus_record_table classes, places, files;
    struct plus_class_tally *dict; /* that of `dict`, where owned dicts are */
    struct plus_granules shared;   /* dicts met as somebody's that have other references, too */
    Py_ssize_t frozen, immortal;
    struct plus_sum sizes[PLUS_SIZE_CLASSES];
};

/* 0, or -ENOMEM. */
int
plus_tally_init(struct plus_tally *tally);

/* Counts one object, which has not been counted before; 0, or -ENOMEM. */
int
plus_tally_add(struct plus_tally *tally, PyObject *op, bool frozen);

/* Bytes that the tally takes. */
size_t
plus_tally_bytes(const struct plus_tally *tally);

/* Takes a reference to every class, namespace and name, so that the interpreter may go on.  Once, and after it
 * nothing is added. */
void
plus_tally_hold(struct plus_tally *tally);

/* Frees all; with held = true gives back what plus_tally_hold() took. */
void
plus_tally_free(struct plus_tally *tally, bool held);

/* The size that blocks of a size class have at most. */
Py_ssize_t
plus_size_class_limit(unsigned index);

#endif
