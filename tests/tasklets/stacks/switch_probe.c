/* What a switch of C stacks keeps, and how an unwinder sees a fresh stack; run by test_engine.py.
 *
 * Two loops on two stacks take turns.  Each has more live numbers than there are registers that a call
 * preserves, of both kinds, and a rounding mode of its own.
 */
#define _GNU_SOURCE
#include "tasklets/stacks/switch.h"

#include <execinfo.h>
#include <fenv.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define LIVE 24
#define TURNS 100

static void *first, *second;
static _Alignas(16) char stack[256 << 10];
static volatile double third = 3;

static void
fail(const char *what)
{
    puts(what);
    fflush(stdout);
    _Exit(1);
}

#define CHECK(condition) ((condition) ? (void)0 : fail(#condition))

static void
take_turns(void **from, void **to, int start, int rounding)
{
    int64_t integers[LIVE];
    double floats[LIVE];

    CHECK(fesetround(rounding) == 0);
    double rounded = 1 / third;

    for (int i = 0; i < LIVE; i++) {
        integers[i] = start + i;
        floats[i] = start - i;
    }
    for (int turn = 1; turn <= TURNS; turn++) {
        plus_switch(from, *to);
#pragma GCC unroll 24
        for (int i = 0; i < LIVE; i++) {
            integers[i] += i;
            floats[i] -= i;
        }
        CHECK(fegetround() == rounding);
        CHECK(1 / third == rounded);
    }
    for (int i = 0; i < LIVE; i++) {
        CHECK(integers[i] == start + i + (int64_t)TURNS * i);
        CHECK(floats[i] == start - i - (double)TURNS * i);
    }
}

static void
entry(void)
{
    void *callers[32];

    CHECK((uintptr_t)__builtin_frame_address(0) % 16 == 0);
    /* This function, the trampoline, and then nothing. */
    int count = backtrace(callers, 32);

    CHECK(count >= 1 && count <= 3);
    take_turns(&second, &first, 1000, FE_UPWARD);
    plus_switch(&second, first);
    fail("an ended one was switched to");
}

int
main(void)
{
    second = plus_switch_prepare(stack + sizeof(stack), entry);
    take_turns(&first, &second, -1000, FE_DOWNWARD);
    plus_switch(&first, second); /* lets it come to its end */
    puts("kept");
    return 0;
}
