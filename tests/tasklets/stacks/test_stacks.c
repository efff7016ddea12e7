/* Stacks that are made cold have no pages, and come back as they were; guards are where they were. */
#define _GNU_SOURCE
#include "_base/memory/page.h"
#include "tasklets/stacks/stacks.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT 150 /* more than two slabs */
#define USED 5000

struct user {
    struct plus_stack *stack;
    struct plus_slice *slice;
    bool willing;
};

static bool
cool(void *owner, void *arg)
{
    struct user *user = owner;

    (*(int *)arg)++;
    if (user->willing && user->slice == NULL) {
        user->slice =
            plus_stack_copy_out(user->stack, user->stack->top - USED, user->stack->top + 100);
    }
    return user->slice != NULL;
}

static void
fill(struct user *user, int number)
{
    memset(user->stack->top - USED, number, USED + 100);
}

static void
check(struct user *user, int number)
{
    for (const char *at = user->stack->top - USED; at < user->stack->top + 100; at++) {
        assert(*at == (char)number);
    }
}

static bool
page_is_there(char *at)
{
    unsigned char there = 0;

    assert(mincore((char *)plus_page_floor((uintptr_t)at), plus_page_bytes(), &there) == 0);
    return there & 1;
}

static bool
has_pages(const struct plus_stack *stack)
{
    return page_is_there(stack->top - 1);
}

static void
check_faults(volatile char *address)
{
    int status;
    pid_t child = fork();

    if (child == 0) {
        signal(SIGSEGV, SIG_DFL); /* under a sanitizer the fault would be its own */
        *address = 1;
        _exit(0);
    }
    assert(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
}

/* Whole pages, whatever their size: the kernel protects no less.  Only a guard of pages can be hit. */
static void
check_guard(const struct plus_stack_pool *pool, const struct plus_stack *stack)
{
    size_t guard_bytes = pool->stack_bytes < PLUS_STACK_BYTES_WIDE ? 64 << 10 : 1 << 20;

    assert((uintptr_t)stack->low % plus_page_bytes() == 0);
    assert((uintptr_t)stack->high % plus_page_bytes() == 0);
    assert(guard_bytes % plus_page_bytes() == 0);
    if (stack->guard == PLUS_GUARD_WORD) {
        return;
    }
    assert(stack->guard != PLUS_GUARD_NONE);
    check_faults(stack->low - 1);
    check_faults(stack->low - guard_bytes);
    assert(plus_stack_guard_hit(pool, stack->low - 1) == stack);
    assert(plus_stack_guard_hit(pool, stack->low - guard_bytes) == stack);
    assert(plus_stack_guard_hit(pool, stack->low - guard_bytes - 1) != stack);
    assert(plus_stack_guard_hit(pool, stack->low) == NULL);
}

static void
check_stacks_of(size_t stack_bytes)
{
    struct plus_stack_pool pool = {.stack_bytes = stack_bytes};
    struct user users[COUNT] = {0};
    int asked = 0;

    for (int i = 0; i < COUNT; i++) {
        users[i].stack = plus_stack_take(&pool, &users[i]);
        assert(users[i].stack != NULL);
        assert((size_t)(users[i].stack->top - users[i].stack->low) >= stack_bytes);
        users[i].willing = i != 3;
        fill(&users[i], i);
    }
    assert(plus_stacks_trim(&pool, cool, &asked) == COUNT - 1 && asked == COUNT);
    for (int i = 0; i < COUNT; i++) {
        assert(has_pages(users[i].stack) == (i == 3));
    }
    asked = 0;
    assert(plus_stacks_trim(&pool, cool, &asked) == 0 && asked == 1);

    /* In the slab of the unwilling one, and in one that was given back as a whole. */
    int some[] = {4, COUNT - 1, COUNT - 2};

    for (int i = 0; i < 3; i++) {
        struct user *user = &users[some[i]];

        plus_stack_put_back(user->stack, user->slice);
        user->slice = NULL;
        check(user, some[i]);
        check_guard(&pool, user->stack);
    }
    check(&users[3], 3);
    assert(plus_stacks_trim(&pool, cool, &asked) == 3);
    for (int i = 0; i < COUNT; i++) {
        if (i != 3) {
            plus_stack_put_back(users[i].stack, users[i].slice);
        }
        check(&users[i], i);
        plus_stack_give(&pool, users[i].stack);
    }
    assert(pool.in_use == 0);

    /* What is free keeps no pages either. */
    assert(plus_stacks_trim(&pool, cool, &asked) == 0);
    for (int i = 0; i < COUNT; i++) {
        assert(!has_pages(users[i].stack));
    }
    plus_stacks_free(&pool);
}

/* Any pattern of those that stay and those that go cold, over and over: neighbours share page tables and guards. */
static void
check_patterns(size_t stack_bytes)
{
    struct plus_stack_pool pool = {.stack_bytes = stack_bytes};
    struct user users[COUNT] = {0};
    unsigned random = 1;
    int asked = 0;

    for (int i = 0; i < COUNT; i++) {
        users[i].stack = plus_stack_take(&pool, &users[i]);
        fill(&users[i], i);
    }
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < COUNT; i++) {
            random = random * 1103515245u + 12345u;
            users[i].willing = (random >> 16) % 4 < (unsigned)round % 4 + 1u;
        }
        plus_stacks_trim(&pool, cool, &asked);
        for (int i = 0; i < COUNT; i++) {
            assert(has_pages(users[i].stack) == (users[i].slice == NULL));
            if (users[i].slice != NULL && (i + round) % 3 > 0) {
                plus_stack_put_back(users[i].stack, users[i].slice);
                users[i].slice = NULL;
            }
            if (users[i].slice == NULL) {
                check(&users[i], i);
                assert(users[i].stack->guard != PLUS_GUARD_NONE);
            }
        }
        int hot = round;

        while (users[hot].slice != NULL) {
            hot++;
        }
        check_guard(&pool, users[hot].stack);
    }
    for (int i = 0; i < COUNT; i++) {
        if (users[i].slice != NULL) {
            plus_stack_put_back(users[i].stack, users[i].slice);
        }
        check(&users[i], i);
        plus_stack_give(&pool, users[i].stack);
    }
    plus_stacks_free(&pool);
    assert(pool.slabs == NULL);
}

/* Free ones that were used to their depth, in any order of giving and taking. */
static void
check_settling(void)
{
    struct plus_stack_pool pool = {.stack_bytes = (size_t)8 << 20};
    struct plus_stack *stacks[40];

    for (int i = 0; i < 40; i++) {
        stacks[i] = plus_stack_take(&pool, stacks);
        stacks[i]->top[-(1 << 20)] = 1;
    }
    for (int i = 0; i < 40; i++) {
        plus_stack_give(&pool, stacks[i]);
    }
    plus_stacks_settle(&pool);
    assert(pool.unsettled == 0);
    for (int i = 0; i < 40; i++) {
        assert(!page_is_there(stacks[i]->top - (1 << 20)));
    }
    stacks[0] = plus_stack_take(&pool, stacks);
    stacks[1] = plus_stack_take(&pool, stacks);
    plus_stacks_resize(&pool, PLUS_STACK_BYTES_MIN);
    plus_stack_give(&pool, stacks[0]);
    plus_stacks_resize(&pool, (size_t)8 << 20);
    plus_stack_give(&pool, stacks[1]);
    assert(pool.unsettled <= 1 && pool.in_use == 0 && pool.free_count == 72);
    plus_stacks_free(&pool);
}

/* Whoever has had very many keeps the pages of those that were given last, and of no more. */
static void
check_very_many(void)
{
    enum { MANY = 5000 };
    struct plus_stack_pool pool = {.stack_bytes = PLUS_STACK_BYTES_MIN};
    static struct plus_stack *stacks[MANY];
    int filled = 0;

    for (int i = 0; i < MANY; i++) {
        stacks[i] = plus_stack_take(&pool, stacks);
        stacks[i]->top[-1] = 1;
    }
    for (int i = 0; i < MANY; i++) {
        plus_stack_give(&pool, stacks[i]);
    }
    for (int i = 0; i < MANY; i++) {
        filled += page_is_there(stacks[i]->top - 1);
    }
    assert(filled >= 1000 && filled <= 1100);
    for (int i = 0; i < 10; i++) {
        struct plus_stack *stack = plus_stack_take(&pool, stacks);
        assert(stack == stacks[MANY - 1] && page_is_there(stack->top - 1));
        plus_stack_give(&pool, stack);
    }
    plus_stacks_resize(&pool, (size_t)1 << 20);
    plus_stacks_trim(&pool, NULL, NULL);
    assert(pool.filled == 0);
    plus_stacks_resize(&pool, PLUS_STACK_BYTES_MIN);
    for (int i = 0; i < MANY; i++) {
        stacks[i] = plus_stack_take(&pool, stacks);
    }
    for (int i = 0; i < MANY; i++) {
        plus_stack_give(&pool, stacks[i]);
    }
    assert(pool.filled >= 1000 && pool.filled <= 1100);
    plus_stacks_trim(&pool, NULL, NULL);
    assert(pool.filled == 0);
    plus_stacks_free(&pool);
}

int
main(void)
{
    size_t sizes[] = {PLUS_STACK_BYTES_MIN, 70001, PLUS_STACK_BYTES_WIDE, (size_t)8 << 20, 3333333};

    for (int i = 0; i < 5; i++) {
        check_stacks_of(sizes[i]);
        check_patterns(sizes[i]);
    }
    check_settling();
    check_very_many();
    puts("ok");
    return 0;
}
