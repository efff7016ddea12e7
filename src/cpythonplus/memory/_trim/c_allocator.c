/* Symbols in the same object as malloc() tell which allocator it is: an extension that brings a jemalloc for its own
 * use does not count.  All symbols are looked up at run time, so nothing here depends on the C library of the build.
 *
 *     mallctl                             beside malloc: jemalloc
 *     mi_collect                          beside malloc: mimalloc
 *     MallocExtension_ReleaseFreeMemory   beside malloc: tcmalloc
 *     malloc_trim                         beside malloc: glibc
 *     none                                musl's, a sanitizer's
 *
 * The order matters: an allocator that replaces malloc may have a malloc_trim of its own, for compatibility.  The
 * symbols are looked up once, with the GIL held; the functions' addresses are written before `known`, and any thread
 * may read them after it has read `known`.
 *
 * Rejected: checking only that a name can be found (libraries with an allocator of their own export it, and are loaded
 * early), the name of the library in /proc/self/maps (it may be linked into the program), and the address of malloc()
 * in this file (in a program that is not position-independent it is an entry of a table). */
#define _GNU_SOURCE
#include "c_allocator.h"

#include <dlfcn.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdint.h>

#define JEMALLOC_ALL_ARENAS "4096" /* MALLCTL_ARENAS_ALL, since 5.0 */

#define UNKNOWN (-1)

/* The result; written by the first call of plus_c_allocator_kind(). */
static _Atomic int known = UNKNOWN;
static int (*malloc_trim_function)(size_t);
static int (*mallctl_function)(const char *, void *, size_t *, void *, size_t);
static void (*mi_collect_function)(bool);
static void (*tcmalloc_release_function)(void);
static unsigned char (*tcmalloc_property_function)(const char *, size_t *); /* or NULL */

static void *
symbol(const char *name)
{
    return dlsym(RTLD_DEFAULT, name);
}

/* True if both symbols are found, in the same object. */
static bool
are_together(const char *one, const char *other)
{
    Dl_info found_one, found_other;
    void *address_one = symbol(one), *address_other = symbol(other);

    return address_one != NULL && address_other != NULL && dladdr(address_one, &found_one) &&
           dladdr(address_other, &found_other) && found_one.dli_fbase == found_other.dli_fbase;
}

/* In a program that is not position-independent, the address of a function that the program itself takes is the
 * address of its PLT entry.  So several functions of the allocator are tried. */
static bool
beside_malloc(const char *name)
{
    return are_together(name, "malloc") || are_together(name, "calloc") ||
           are_together(name, "realloc") || are_together(name, "malloc_usable_size");
}

/* POSIX allows converting the result of dlsym to a function. */
static enum plus_c_allocator_kind
find(void)
{
    if (beside_malloc("mallctl")) {
        *(void **)&mallctl_function = symbol("mallctl");
        return PLUS_C_ALLOCATOR_JEMALLOC;
    }
    if (beside_malloc("mi_collect")) {
        *(void **)&mi_collect_function = symbol("mi_collect");
        return PLUS_C_ALLOCATOR_MIMALLOC;
    }
    if (beside_malloc("MallocExtension_ReleaseFreeMemory")) {
        *(void **)&tcmalloc_release_function = symbol("MallocExtension_ReleaseFreeMemory");
        *(void **)&tcmalloc_property_function = symbol("MallocExtension_GetNumericProperty");
        return PLUS_C_ALLOCATOR_TCMALLOC;
    }
    if (beside_malloc("malloc_trim")) {
        *(void **)&malloc_trim_function = symbol("malloc_trim");
        return PLUS_C_ALLOCATOR_GLIBC;
    }
    return PLUS_C_ALLOCATOR_OTHER;
}

enum plus_c_allocator_kind
plus_c_allocator_kind(void)
{
    int kind = atomic_load(&known);

    if (kind == UNKNOWN) {
        kind = (int)find();
        atomic_store(&known, kind);
    }
    return (enum plus_c_allocator_kind)kind;
}

bool
plus_c_allocator_release(enum plus_c_allocator_kind kind)
{
    switch (kind) {
    case PLUS_C_ALLOCATOR_GLIBC:
        malloc_trim_function(0);
        return true;
    case PLUS_C_ALLOCATOR_JEMALLOC:
        mallctl_function("thread.tcache.flush", NULL, NULL, NULL,
                         0); /* an error if the caches are off */
        return mallctl_function("arena." JEMALLOC_ALL_ARENAS ".purge", NULL, NULL, NULL, 0) == 0;
    case PLUS_C_ALLOCATOR_MIMALLOC:
        mi_collect_function(true);
        return true;
    case PLUS_C_ALLOCATOR_TCMALLOC:
        tcmalloc_release_function();
        return true;
    case PLUS_C_ALLOCATOR_OTHER:
        break;
    }
    return false;
}

long long
plus_c_allocator_used_bytes(enum plus_c_allocator_kind kind)
{
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33) /* mallinfo2 */
    if (kind == PLUS_C_ALLOCATOR_GLIBC) {
        struct mallinfo2 info = mallinfo2();
        return (long long)(info.uordblks + info.hblkhd);
    }
#else
    (void)kind;
#endif
    return -1;
}

size_t
plus_c_allocator_free_bytes(enum plus_c_allocator_kind kind)
{
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33) /* mallinfo2 */
    if (kind == PLUS_C_ALLOCATOR_GLIBC) {
        return mallinfo2().fordblks;
    }
#else
    (void)kind;
#endif
    return 0;
}

static size_t
jemalloc_number(const char *name)
{
    size_t number = 0, bytes = sizeof number;

    return mallctl_function(name, &number, &bytes, NULL, 0) == 0 ? number : 0;
}

/* The names are those of their manuals. */
const char *
plus_c_allocator_ask(size_t *used_bytes, size_t *resident_bytes)
{
    uint64_t epoch = 1; /* writing it refreshes jemalloc's numbers */
    size_t heap, unmapped;

    *used_bytes = *resident_bytes = 0;
    switch (plus_c_allocator_kind()) {
    case PLUS_C_ALLOCATOR_JEMALLOC:
        mallctl_function("epoch", NULL, NULL, &epoch, sizeof epoch);
        *used_bytes = jemalloc_number("stats.allocated");
        *resident_bytes = jemalloc_number("stats.resident");
        return "jemalloc";
    case PLUS_C_ALLOCATOR_MIMALLOC:
        return "mimalloc";
    case PLUS_C_ALLOCATOR_TCMALLOC:
        if (tcmalloc_property_function != NULL &&
            tcmalloc_property_function("generic.current_allocated_bytes", used_bytes) &&
            tcmalloc_property_function("generic.heap_size", &heap) &&
            tcmalloc_property_function("tcmalloc.pageheap_unmapped_bytes", &unmapped)) {
            *resident_bytes = heap - unmapped;
        }
        return "tcmalloc";
    case PLUS_C_ALLOCATOR_GLIBC:
    case PLUS_C_ALLOCATOR_OTHER:
        break;
    }
    return NULL;
}
