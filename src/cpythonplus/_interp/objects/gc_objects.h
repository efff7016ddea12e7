/* Every object that the garbage collector knows.
 *
 *     PLUS_FACT_GC_RINGS holds   its lists are walked along: frozen objects, too, which gc.get_objects() leaves out
 *     it is refused              a listing is made of what gc.get_objects() returns: slower, 8 bytes and more for each
 *                                object, and without the frozen ones
 *
 * All with the GIL held; of the calling interpreter.  During a collection the objects that it has found
 * unreachable are in none of the lists. */
#ifndef PLUS_INTERP_GC_OBJECTS_H
#define PLUS_INTERP_GC_OBJECTS_H

#include "../../_base/compat.h"

/* PLUS_FACT_GC_RINGS has been asked in this interpreter, and there has to be a listing. */
bool
plus_gc_objects_need_listing(void);

/* Has the listing ready until plus_gc_objects_end(), if one is needed.  May be called again in between: then nothing is
 * done.  The first call makes objects, and audit hooks of the program run (gc.get_objects), so nothing may be borrowed
 * yet; from there to the end the caller must neither free an object nor give the GIL up.  A forked copy of the process
 * has the listing, too.
 * 0; -ENOMEM; -EPERM: gc.get_objects() is refused by a hook, or has been replaced. */
int
plus_gc_objects_begin(void);

void
plus_gc_objects_end(void);

/* Bytes that the listing takes; 0 without one. */
size_t
plus_gc_objects_listing_bytes(void);

/* Calls `visit` for each, the frozen ones last and with frozen = true, until it returns something else than 0,
 * which is returned; else 0, or what plus_gc_objects_begin() returns.  `visit` must neither make nor free objects that
 * the collector knows, nor give the GIL up. */
int
plus_gc_objects_visit(int (*visit)(PyObject *op, bool frozen, void *arg), void *arg);

/* Whether the listing has it. */
bool
plus_gc_objects_listed(const PyObject *op);

#endif
