/* The program re-points its own import of getpid.  Built in several ways (tests/meson.build): lazy
 * binding, binding at start with a closed table (full RELRO), and calls without a linkage table. */
#define _GNU_SOURCE
#include "check.h"

#include "gil/scheduler/slots.h"

#include <dlfcn.h>
#include <errno.h>
#include <unistd.h>

static int calls;

int
main(void);

/* Code of its own section: one way of linking puts it into a segment of its own, behind all others, as programs
 * have it that were laid out anew by what they run often. */
#define FAR_AWAY __attribute__((section(".far_away"), noinline))

FAR_AWAY static pid_t
fake_getpid(void)
{
    calls++;
    return -42;
}

/* Also the second slot: an address taken. */
static pid_t (*volatile pointer)(void);

/* Not &function: in a program without position-independent code that is a place in the program. */
static uintptr_t
true_getpid(void)
{
    return (uintptr_t)dlsym(RTLD_NEXT, "getpid");
}

static uintptr_t
true_getppid(void)
{
    return (uintptr_t)dlsym(RTLD_NEXT, "getppid");
}

/* What /proc says of the slot's page. */
static char
writable(const uintptr_t *address)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512], found = '?';

    CHECK(maps != NULL);
    while (fgets(line, sizeof(line), maps) != NULL) {
        unsigned long start, end;
        char mode[5];
        CHECK(sscanf(line, "%lx-%lx %4s", &start, &end, mode) == 3);
        if ((uintptr_t)address >= start && (uintptr_t)address < end) {
            found = mode[1];
        }
    }
    CHECK(fclose(maps) == 0);
    return found;
}

static void
test_write_and_restore(void)
{
    struct plus_slot_set set = {.symbol = "getpid"};
    const void *inside = (const void *)(uintptr_t)fake_getpid;
    uintptr_t target = (uintptr_t)fake_getpid;
    pid_t pid = getpid();
    char modes[PLUS_SLOTS_PER_SYMBOL];

    CHECK(plus_slots_find(inside, &set) == 0);
    CHECK(set.count >= 1 && set.count <= PLUS_SLOTS_PER_SYMBOL);
    CHECK(plus_slots_untouched(inside, &set, true_getpid()));
    for (size_t i = 0; i < set.count; i++) {
        modes[i] = writable(set.addresses[i]);
        CHECK(set.readonly[i] || modes[i] == 'w');
    }
    for (int round = 0; round < 3; round++) {
        calls = 0;
        CHECK(plus_slots_write(&set, target) == 0);
        CHECK(getpid() == -42 && calls == 1);
        CHECK(plus_slots_restore(&set, target) == 0);
        CHECK(getpid() == pid && calls == 1);
        CHECK(plus_slots_untouched(inside, &set, true_getpid()));
        for (size_t i = 0; i < set.count; i++) {
            CHECK(*set.addresses[i] == set.originals[i] || *set.addresses[i] == true_getpid());
            CHECK(writable(set.addresses[i]) == modes[i]); /* closed again, if it was */
        }
    }
}

/* Before anything has called it: with lazy binding the slot leads back into the program's own code, wherever in the
 * program that is. */
static void
test_a_call_that_is_not_bound_yet(void)
{
    struct plus_slot_set set = {.symbol = "getuid"};

    CHECK(plus_slots_find((const void *)(uintptr_t)fake_getpid, &set) == 0);
    uintptr_t bound = (uintptr_t)dlsym(RTLD_NEXT, "getuid");
    CHECK(plus_slots_untouched((const void *)(uintptr_t)fake_getpid, &set, bound));
    CHECK(plus_slots_untouched((const void *)(uintptr_t)main, &set, bound));
    (void)getuid();
    CHECK(plus_slots_untouched((const void *)(uintptr_t)fake_getpid, &set, bound));
}

/* Somebody else wrote after us: theirs stays. */
static void
test_a_foreign_write_is_left_alone(void)
{
    struct plus_slot_set ours = {.symbol = "getpid"}, theirs = {.symbol = "getpid"};
    const void *inside = (const void *)(uintptr_t)fake_getpid;

    CHECK(plus_slots_find(inside, &ours) == 0);
    CHECK(plus_slots_write(&ours, true_getppid()) == 0);
    CHECK(!plus_slots_untouched(inside, &ours, true_getpid()));
    CHECK(plus_slots_find(inside, &theirs) == 0);
    CHECK(plus_slots_write(&theirs, (uintptr_t)fake_getpid) == 0);
    CHECK(plus_slots_restore(&ours, true_getppid()) == -EBUSY);
    CHECK(getpid() == -42);
    CHECK(plus_slots_restore(&theirs, (uintptr_t)fake_getpid) == 0);
    CHECK(getpid() == getppid());
    CHECK(plus_slots_restore(&ours, true_getppid()) == 0);
    CHECK(getpid() > 0);
}

static void
test_what_is_not_there(void)
{
    struct plus_slot_set set = {.symbol = "a_function_that_nobody_has"};

    CHECK(plus_slots_find((const void *)(uintptr_t)fake_getpid, &set) == -ENOENT);
    CHECK(set.count == 0);
    CHECK(plus_slots_write(&set, 1) == 0); /* nothing to do */
    /* Not in any object. */
    int on_the_stack = 0;
    set.symbol = "getpid";
    CHECK(plus_slots_find(&on_the_stack, &set) == -ENOSYS);
}

/* Another object's slots of the same function are its own. */
static void
test_only_this_object(void)
{
    struct plus_slot_set set = {.symbol = "getpid"};

    CHECK(plus_slots_find((const void *)(uintptr_t)fake_getpid, &set) == 0);
    CHECK(plus_slots_write(&set, (uintptr_t)fake_getpid) == 0);
    CHECK(((pid_t (*)(void))true_getpid())() > 0);
    CHECK(plus_slots_restore(&set, (uintptr_t)fake_getpid) == 0);
}

int
main(void)
{
    test_a_call_that_is_not_bound_yet();
    pointer = getpid;
    test_write_and_restore();
    test_a_foreign_write_is_left_alone();
    test_what_is_not_there();
    test_only_this_object();
    CHECK(pointer() > 0);
    return 0;
}
