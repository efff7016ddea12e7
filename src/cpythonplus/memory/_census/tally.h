/* The sums of a census: objects and bytes by class; by the module that functions, code and classes come from; and by
 * the size of blocks.
 *
 * The GIL is held throughout.  No Python object is made.  Records refer to objects by address, so these objects must
 * not be freed before plus_tally_hold() or the end of the tally. */
#pragma once

#include "../../_base/compat.h"
#include "../../_base/memory/granules.h"
#include "../../_base/memory/record_table.h"
#include "../../_interp/objects/object_parts.h"

#define PLUS_SMALL_CLASSES 33 /* 0, and pymalloc's: 16, 32 ... 512 */
#define PLUS_SIZE_CLASSES 88  /* then 1024, 2048 ... */

struct plus_sum {
    Py_ssize_t objects, bytes;
};

/* The sums of one class.  A dict counts in `self` of dict.  A dict of attributes of an instance, a module or a class
 * counts in `owned` of dict, too, and in `dicts` of that class. */
struct plus_class_tally {
    PyTypeObject *type;
    struct plus_measuring how;
    unsigned role;
    struct plus_sum self, owned;
    struct plus_sum dicts;     /* of the instances */
    struct plus_sum itself;    /* the class object: 1 or 0 */
    Py_ssize_t own_dict_bytes; /* bytes of its namespace */
};

/* The sums of one namespace, or of one source file's name. */
struct plus_place_tally {
    PyObject *place;
    struct plus_sum self;  /* functions and modules that have the namespace; code of the file */
    struct plus_sum dicts; /* of the functions */
    bool is_module;        /* some module has the namespace */
    Py_ssize_t own_bytes;  /* bytes of the namespace; if is_module */
};

struct plus_tally {
    struct plus_record_table classes, places, files;
    struct plus_class_tally *dict; /* the record of `dict`, which has the owned dicts */
    struct plus_granules shared;   /* dicts with several references that were met with an owner */
    Py_ssize_t frozen, immortal;
    struct plus_sum sizes[PLUS_SIZE_CLASSES];
};

/* 0, or -ENOMEM. */
int
plus_tally_init(struct plus_tally *tally);

/* Counts one object, which has not been counted before; 0, or -ENOMEM. */
int
plus_tally_add(struct plus_tally *tally, PyObject *op, bool frozen);

/* Returns the bytes that the tally takes. */
size_t
plus_tally_bytes(const struct plus_tally *tally);

/* Takes a reference to every class, namespace and name, so that the interpreter may run.  Call it once; nothing may be
 * added afterwards. */
void
plus_tally_hold(struct plus_tally *tally);

/* Frees the tally; with held = true releases the references of plus_tally_hold(). */
void
plus_tally_free(struct plus_tally *tally, bool held);

/* Returns the largest block of a size class, in bytes. */
Py_ssize_t
plus_size_class_limit(unsigned index);
