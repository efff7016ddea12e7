/* A kernel whose pages have $PAGE_BYTES, for what is preloaded with this and calls it by the C library: it takes
 * whole pages only, and says so of each. What the C library itself maps has small pages still.
 *
 * A real one rounds lengths up, so advice and protection reach further than they were meant to: refused here.
 * With $NO_GUARD_PAGES it is older than Linux 6.13. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define SMALL ((size_t)4096) /* of the kernel that is there */
#define GUARD_INSTALL 102    /* MADV_GUARD_INSTALL */
#define REAL(name) ((__typeof__(&(name)))dlsym(RTLD_NEXT, #name))
#define SEEN __attribute__((visibility("default")))

static size_t
page(void)
{
    const char *bytes = getenv("PAGE_BYTES");

    return bytes == NULL ? SMALL : strtoul(bytes, NULL, 10);
}

static size_t
whole(size_t bytes)
{
    return (bytes + page() - 1) / page() * page();
}

static int
refuses(const void *start, size_t bytes)
{
    errno = EINVAL;
    return (uintptr_t)start % page() != 0 || bytes % page() != 0;
}

SEEN long
sysconf(int name)
{
    return name == _SC_PAGESIZE ? (long)page() : REAL(sysconf)(name);
}

SEEN void *
mmap(void *start, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    if (flags & MAP_FIXED) {
        return refuses(start, 0) ? MAP_FAILED
                                 : REAL(mmap)(start, whole(bytes), protection, flags, fd, offset);
    }
    char *room = REAL(mmap)(NULL, whole(bytes) + page(), PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (room == MAP_FAILED) {
        return MAP_FAILED;
    }
    char *mapped = room + (page() - (uintptr_t)room % page()) % page();
    size_t before = (size_t)(mapped - room);

    if (before > 0) {
        REAL(munmap)(room, before);
    }
    REAL(munmap)(mapped + whole(bytes), page() - before);
    return REAL(mmap)(mapped, whole(bytes), protection, flags | MAP_FIXED, fd, offset);
}

/* What the build, with offsets of 64 bits, calls. */
SEEN __attribute__((alias("mmap"))) void *
mmap64(void *, size_t, int, int, int, off_t);

SEEN int
munmap(void *start, size_t bytes)
{
    return refuses(start, 0) ? -1 : REAL(munmap)(start, whole(bytes));
}

SEEN int
mprotect(void *start, size_t bytes, int protection)
{
    return refuses(start, bytes) ? -1 : REAL(mprotect)(start, bytes, protection);
}

SEEN int
madvise(void *start, size_t bytes, int advice)
{
    if (advice == GUARD_INSTALL && getenv("NO_GUARD_PAGES") != NULL) {
        errno = EINVAL;
        return -1;
    }
    return refuses(start, bytes) ? -1 : REAL(madvise)(start, bytes, advice);
}

SEEN int
mincore(void *start, size_t bytes, unsigned char *states)
{
    unsigned char small[64];

    if (refuses(start, 0)) {
        return -1;
    }
    for (size_t at = 0; at < bytes; at += page(), states++) {
        if (REAL(mincore)((char *)start + at, page(), small) != 0) {
            return -1;
        }
        *states = 0;
        for (size_t i = 0; i < page() / SMALL; i++) {
            *states |= small[i];
        }
    }
    return 0;
}
