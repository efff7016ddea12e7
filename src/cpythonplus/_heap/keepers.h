/* The objects that the interpreter itself holds, named by the call that gave it the object:
 * "os.register_at_fork(before)". */
#pragma once

#include "heap_graph.h"

/* Fill the graph's table of keepers.  For a copy of the process only: it changes the interpreter's lists and restores
 * them.  Runs no Python code.  PLUS_FACT_THREAD_STATE has to be asked before, in the process.  0, or -ENOMEM. */
int
plus_keepers_find(struct plus_heap_graph *graph);

/* Add edges from classes to the dicts of their subclasses, which tp_traverse does not visit.  Call this before
 * plus_keepers_find(). 0, or -ENOMEM. */
int
plus_keepers_connect_subclasses(struct plus_heap_graph *graph);
