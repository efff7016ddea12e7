/* How the slots are found, and why writing them is safe.
 *
 * Find.  The loader lists its objects; ours is the one with an executable segment around an address of the core's code.
 * Its dynamic section leads to the symbol table, the string table and two tables of relocations.  Each relocation of
 * type JUMP_SLOT (a call) or GLOB_DAT (an address taken, or a call without a PLT) is a slot of its symbol.  The loader
 * itself used these tables to fill the slots.
 *
 * Judge.  A slot holds one of three things: the address that the symbol is bound to in this library too; with lazy
 * binding, before the first call, an address in the object's PLT; or an address that other code has written, which we
 * never replace.  The PLT may lie in any executable segment of the object.
 *
 * Write.  A slot is one aligned word, so a thread that calls through it meanwhile reaches the old or the new function;
 * both must be right then (hooks.c).  Lazy binding may overwrite our word once: a thread that was inside the loader's
 * resolver while we wrote puts libc's address back.  That loses our slot until the next installation, so the hooks
 * allow for threads that libc lets wait.  A RELRO page is made writable for the one word, and read-only again.
 *
 * Restore.  Only a slot that still holds our word gets its former one back, so libraries that re-point the same slots
 * may come and go in any order.
 *
 * Rejected: patching machine code (needs a disassembler for each architecture, and writable code); LD_PRELOAD
 * (re-points every library's calls, and is decided before the program starts); dladdr1() and its link map to find the
 * object (musl has no dladdr1(), and does not open the executable a second time).
 */
#define _GNU_SOURCE
#include "slots.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "../../_base/memory/page.h"

#if defined(__x86_64__)
#define RELOC_JUMP_SLOT R_X86_64_JUMP_SLOT
#define RELOC_GLOB_DAT R_X86_64_GLOB_DAT
#elif defined(__aarch64__)
#define RELOC_JUMP_SLOT R_AARCH64_JUMP_SLOT
#define RELOC_GLOB_DAT R_AARCH64_GLOB_DAT
#else
#define RELOC_JUMP_SLOT (-1)
#define RELOC_GLOB_DAT (-1)
#endif

/* The dynamic section of one object; only RELA tables, which both machines use. */
struct object {
    const ElfW(Sym) *symbols;
    const char *strings;
    const ElfW(Rela) *tables[2]; /* DT_JMPREL (calls) and DT_RELA (addresses) */
    size_t sizes[2];
    ElfW(Addr) base;
};

/* The object's address range, and the part of it that RELRO made read-only. */
struct extent {
    const void *inside; /* in: an address in the object's code */
    ElfW(Addr) base;
    const ElfW(Dyn) *dynamic; /* NULL: no dynamic linking */
    ElfW(Addr) relro_start, relro_end;
    const ElfW(Phdr) *headers; /* the loader's, valid as long as the object is loaded */
    int header_count;
    int found;
};

/* Code may lie in several segments: BOLT rewrites a linked program so that its hot code has a segment of its own
 * and its PLT lies in another. */
static int
is_in_code(const struct extent *extent, ElfW(Addr) address)
{
    for (int i = 0; i < extent->header_count; i++) {
        const ElfW(Phdr) *segment = &extent->headers[i];

        if (segment->p_type == PT_LOAD && (segment->p_flags & PF_X) &&
            address - extent->base - segment->p_vaddr < segment->p_memsz) {
            return 1;
        }
    }
    return 0;
}

/* glibc stores relocated addresses in the dynamic section; musl and the vDSO leave offsets. */
static ElfW(Addr)
absolute(const struct object *object, ElfW(Addr) address)
{
    return address < object->base ? address + object->base : address;
}

static int
read_dynamic(const struct extent *extent, struct object *object)
{
    ElfW(Addr) symbols = 0, strings = 0, jmprel = 0, rela = 0;
    ElfW(Xword) plt_kind = DT_RELA;

    memset(object, 0, sizeof(*object));
    object->base = extent->base;
    for (const ElfW(Dyn) *d = extent->dynamic; d->d_tag != DT_NULL; d++) {
        switch (d->d_tag) {
        case DT_SYMTAB:
            symbols = d->d_un.d_ptr;
            break;
        case DT_STRTAB:
            strings = d->d_un.d_ptr;
            break;
        case DT_JMPREL:
            jmprel = d->d_un.d_ptr;
            break;
        case DT_PLTRELSZ:
            object->sizes[0] = d->d_un.d_val / sizeof(ElfW(Rela));
            break;
        case DT_PLTREL:
            plt_kind = d->d_un.d_val;
            break;
        case DT_RELA:
            rela = d->d_un.d_ptr;
            break;
        case DT_RELASZ:
            object->sizes[1] = d->d_un.d_val / sizeof(ElfW(Rela));
            break;
        default:
            break;
        }
    }
    if (symbols == 0 || strings == 0 || plt_kind != DT_RELA) {
        return -ENOSYS;
    }
    object->symbols = (const ElfW(Sym) *)absolute(object, symbols);
    object->strings = (const char *)absolute(object, strings);
    object->tables[0] = jmprel ? (const ElfW(Rela) *)absolute(object, jmprel) : NULL;
    object->tables[1] = rela ? (const ElfW(Rela) *)absolute(object, rela) : NULL;
    return 0;
}

static int
read_extent(struct dl_phdr_info *info, size_t size, void *argument)
{
    struct extent *extent = argument;
    struct extent seen = {.inside = extent->inside,
                          .base = info->dlpi_addr,
                          .headers = info->dlpi_phdr,
                          .header_count = info->dlpi_phnum,
                          .found = 1};

    (void)size;
    if (!is_in_code(&seen, (ElfW(Addr))extent->inside)) {
        return 0;
    }
    for (int i = 0; i < seen.header_count; i++) {
        const ElfW(Phdr) *segment = &seen.headers[i];
        ElfW(Addr) start = seen.base + segment->p_vaddr;

        if (segment->p_type == PT_GNU_RELRO) {
            /* The dynamic linker protects whole pages only: a part after the last full page stays writable. */
            seen.relro_start = plus_page_floor(start);
            seen.relro_end = plus_page_floor(start + segment->p_memsz);
        }
        else if (segment->p_type == PT_DYNAMIC) {
            seen.dynamic = (const ElfW(Dyn) *)start;
        }
    }
    *extent = seen;
    return 1;
}

static int
add_slot(struct plus_slot_set *set, uintptr_t *address, const struct extent *extent)
{
    if (set->count == PLUS_SLOTS_PER_SYMBOL) {
        return -E2BIG;
    }
    set->addresses[set->count] = address;
    set->originals[set->count] = *address;
    set->readonly[set->count] =
        (uintptr_t)address >= extent->relro_start && (uintptr_t)address < extent->relro_end;
    set->count++;
    return 0;
}

int
plus_slots_find(const void *inside, struct plus_slot_set *set)
{
    struct extent extent = {.inside = inside};
    struct object object;
    int rc;

    set->count = 0;
    dl_iterate_phdr(read_extent, &extent);
    if (!extent.found || extent.dynamic == NULL) {
        return -ENOSYS;
    }
    rc = read_dynamic(&extent, &object);
    if (rc < 0) {
        return rc;
    }
    for (int t = 0; t < 2; t++) {
        for (size_t i = 0; object.tables[t] != NULL && i < object.sizes[t]; i++) {
            const ElfW(Rela) *rel = &object.tables[t][i];
            long type = (long)ELF64_R_TYPE(rel->r_info);
            const ElfW(Sym) *symbol = &object.symbols[ELF64_R_SYM(rel->r_info)];

            if ((type != RELOC_JUMP_SLOT && type != RELOC_GLOB_DAT) ||
                strcmp(object.strings + symbol->st_name, set->symbol) != 0) {
                continue;
            }
            rc = add_slot(set, (uintptr_t *)(object.base + rel->r_offset), &extent);
            if (rc < 0) {
                return rc;
            }
        }
    }
    return set->count > 0 ? 0 : -ENOENT;
}

/* RELRO pages are made read-only again at once: a writable table would undo a hardening that the distribution
 * chose. */
static int
write_slot(uintptr_t *address, uintptr_t value, int readonly)
{
    void *start = (void *)plus_page_floor((uintptr_t)address);
    size_t page = plus_page_bytes();

    if (readonly && mprotect(start, page, PROT_READ | PROT_WRITE) != 0) {
        return -errno;
    }
    atomic_store((_Atomic uintptr_t *)address, value);
    if (readonly && mprotect(start, page, PROT_READ) != 0) {
        return -errno;
    }
    return 0;
}

int
plus_slots_write(struct plus_slot_set *set, uintptr_t target)
{
    for (size_t i = 0; i < set->count; i++) {
        set->originals[i] = *set->addresses[i];
        int rc = write_slot(set->addresses[i], target, set->readonly[i]);
        if (rc < 0) {
            set->count = i + 1; /* only these may have changed: restore them, ignore the rest */
            plus_slots_restore(set, target);
            return rc;
        }
    }
    return 0;
}

int
plus_slots_restore(struct plus_slot_set *set, uintptr_t target)
{
    int result = 0;

    for (size_t i = 0; i < set->count; i++) {
        if (*set->addresses[i] != target) {
            result = -EBUSY;
            continue;
        }
        int rc = write_slot(set->addresses[i], set->originals[i], set->readonly[i]);
        if (rc < 0) {
            result = rc;
        }
    }
    return result;
}

int
plus_slots_untouched(const void *inside, const struct plus_slot_set *set, uintptr_t resolved)
{
    struct extent extent = {.inside = inside};

    dl_iterate_phdr(read_extent, &extent);
    for (size_t i = 0; i < set->count; i++) {
        uintptr_t value = *set->addresses[i];

        if (value != resolved && !is_in_code(&extent, value)) {
            return 0;
        }
    }
    return 1;
}
