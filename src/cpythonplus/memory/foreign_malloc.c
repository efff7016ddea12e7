#define _GNU_SOURCE
#include "foreign_malloc.h"

#include <dlfcn.h>
#include <stdint.h>

/* Their functions, as their manuals have them; found only if they are loaded. */
typedef int (*mallctl)(const char *name, void *old, size_t *old_bytes, void *new_,
                       size_t new_bytes);
typedef unsigned char (*numeric_property)(const char *name, size_t *value);

static size_t
jemalloc_number(mallctl ask, const char *name)
{
    size_t number = 0, bytes = sizeof number;

    return ask(name, &number, &bytes, NULL, 0) == 0 ? number : 0;
}

static void
ask_jemalloc(mallctl ask, struct plus_foreign_malloc *told)
{
    uint64_t epoch = 1; /* written: the numbers are those of now */

    told->name = "jemalloc";
    ask("epoch", NULL, NULL, &epoch, sizeof epoch);
    told->used_bytes = jemalloc_number(ask, "stats.allocated");
    told->resident_bytes = jemalloc_number(ask, "stats.resident");
}

static void
ask_tcmalloc(numeric_property ask, struct plus_foreign_malloc *told)
{
    size_t heap = 0, unmapped = 0;

    told->name = "tcmalloc";
    if (ask("generic.current_allocated_bytes", &told->used_bytes) &&
        ask("generic.heap_size", &heap) && ask("tcmalloc.pageheap_unmapped_bytes", &unmapped)) {
        told->resident_bytes = heap - unmapped;
    }
}

void
plus_foreign_malloc_ask(struct plus_foreign_malloc *told)
{
    void *found;

    *told = (struct plus_foreign_malloc){0};
    if ((found = dlsym(RTLD_DEFAULT, "mallctl")) != NULL) {
        ask_jemalloc((mallctl)found, told);
    }
    else if ((found = dlsym(RTLD_DEFAULT, "MallocExtension_GetNumericProperty")) != NULL) {
        ask_tcmalloc((numeric_property)found, told);
    }
    else if (dlsym(RTLD_DEFAULT, "mi_version") != NULL) {
        told->name = "mimalloc";
    }
}
