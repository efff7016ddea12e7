/* dl_iterate_phdr() gives each object's program headers, with the loader's lock held.  Writable segments are listed
 * with the extent of their whole object, which is filled in after all of its headers were read.
 *
 * The list is of one moment: a library that is loaded later is not in it, and the address of one that is unloaded later
 * becomes invalid.  So callers use the list at once.
 *
 * Rejected: /proc/self/maps, which shows anonymous mappings, but not the object that the end of a segment without
 * contents belongs to, and which may be hidden.
 */
#define _GNU_SOURCE
#include "segments.h"

#include <errno.h>
#include <link.h>
#include <stdlib.h>

static int
append(struct plus_segments *segments, const struct plus_segment *segment)
{
    if ((segments->count & (segments->count - 1)) == 0) { /* full: doubled each time */
        size_t room = segments->count == 0 ? 1 : 2 * segments->count;
        struct plus_segment *list = realloc(segments->list, room * sizeof *list);
        if (list == NULL) {
            return -ENOMEM;
        }
        segments->list = list;
    }
    segments->list[segments->count++] = *segment;
    return 0;
}

static int
add_object(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    struct plus_segments *segments = arg;
    size_t first = segments->count;
    uintptr_t start = UINTPTR_MAX, end = 0;
    int status = 0;

    for (size_t i = 0; i < info->dlpi_phnum && status == 0; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type != PT_LOAD) {
            continue;
        }
        struct plus_segment segment = {.start = info->dlpi_addr + header->p_vaddr};
        segment.end = segment.start + header->p_memsz;
        start = segment.start < start ? segment.start : start;
        end = segment.end > end ? segment.end : end;
        if ((header->p_flags & PF_W) != 0) {
            status = append(segments, &segment);
        }
    }
    for (size_t i = first; i < segments->count; i++) {
        segments->list[i].object_start = start;
        segments->list[i].object_end = end;
    }
    return status;
}

int
plus_segments_read(struct plus_segments *segments)
{
    *segments = (struct plus_segments){0};
    int status = dl_iterate_phdr(add_object, segments);
    if (status < 0) {
        plus_segments_free(segments);
    }
    return status;
}

void
plus_segments_free(struct plus_segments *segments)
{
    free(segments->list);
    *segments = (struct plus_segments){0};
}

const struct plus_segment *
plus_segments_at(const struct plus_segments *segments, uintptr_t address)
{
    for (size_t i = 0; i < segments->count; i++) {
        if (segments->list[i].start <= address && address < segments->list[i].end) {
            return &segments->list[i];
        }
    }
    return NULL;
}
