/* Every object that the garbage collector knows: frozen ones, too, which gc.get_objects() leaves out.
 *
 * All with the GIL held; of the calling interpreter.  During a collection the objects that it has found
 * unreachable are in none of the lists. */
#ifndef PLUS_INTERP_GC_OBJECTS_H
#define PLUS_INTERP_GC_OBJECTS_H

#include "../_base/compat.h"

/* PLUS_FACT_GC_RINGS.  Calls `visit` for each, the frozen ones last and with frozen = true, until it returns something else than 0,
 * which is returned; else 0.  `visit` must neither make nor free objects that the collector knows, nor give
 * the GIL up. */
int
plus_gc_objects_visit(int (*visit)(PyObject *op, bool frozen, void *arg), void *arg);

#endif
