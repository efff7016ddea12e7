/* Objects that are in use and that no walk meets, since nothing on the heap refers to them and the collector does not
 * know them: strings, numbers, arrays of numpy, tuples and dicts that it has let go of. */
#pragma once

#include "heap_graph.h"

/* Fill graph->left, by the blocks of the arenas and, if malloc is glibc's, by those of malloc.  A left object that an
 * object of C code refers to by itself, as the buffer of an io.StringIO, counts with that one's node.  0, or
 * -ENOMEM. */
int
plus_left_find(struct plus_heap_graph *graph, const struct plus_arenas *arenas, bool is_glibc);

/* Add edges from objects of C code to those that they refer to by a word of their own, if nothing else that was found
 * holds these and tp_traverse leaves them out.  Before plus_heap_graph_finish().  0, or -ENOMEM. */
int
plus_parts_connect(struct plus_heap_graph *graph);

/* The object that keeps a left one, directly or not; the object itself if none does. */
const struct plus_left *
plus_left_head(const struct plus_left *left);
