/* What the interpreter itself holds, by the call that gives it something to hold: "os.register_at_fork(before)". */
#ifndef PLUS_MEMORY_KEEPERS_H
#define PLUS_MEMORY_KEEPERS_H

#include "heap_graph.h"

/* Fills the graph's table of keepers.  In a copy of the process, for it changes what the interpreter holds and sets that back.
 * Runs no Python code.  PLUS_FACT_THREAD_STATE has to be asked before, in the process.  0, or -ENOMEM. */
int
plus_keepers_find(struct plus_heap_graph *graph);

/* Adds edges from classes to the dicts of their subclasses, which tp_traverse does not tell: before the other.
 * 0, or -ENOMEM. */
int
plus_keepers_connect_subclasses(struct plus_heap_graph *graph);

#endif
