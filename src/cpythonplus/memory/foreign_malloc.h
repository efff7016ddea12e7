/* What an allocator says of itself that was loaded instead of the C library's.  Needs no GIL. */
#ifndef PLUS_MEMORY_FOREIGN_MALLOC_H
#define PLUS_MEMORY_FOREIGN_MALLOC_H

#include <stddef.h>

struct plus_foreign_malloc {
    const char *name;                  /* NULL: none that is known */
    size_t used_bytes, resident_bytes; /* 0, 0 where it does not tell */
};

void
plus_foreign_malloc_ask(struct plus_foreign_malloc *told);

#endif
