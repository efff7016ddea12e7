/* What the C test programs share: a check that names itself, and random numbers that repeat. */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Not assert(): a release build would drop it. */
#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* xorshift64: the same numbers in every run, whatever the C library. */
static inline uint64_t
next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}
