/* Stacks that are made cold have no pages, and come back as they were; guards are where they were. */
#define _GNU_SOURCE
#include "tasklets/stacks.h"

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
    if (user->willing) {
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
has_pages(const struct plus_stack *stack)
{
    unsigned char there = 0;
    char *page = (char *)((uintptr_t)(stack->top - 1) & ~(uintptr_t)4095);

    assert(mincore(page, 4096, &there) == 0);
    return there & 1;
}

/* Only a guard of pages can be hit; under a sanitizer the fault would be its own. */
static void
check_guard(const struct plus_stack *stack)
{
    int status;
    pid_t child;

    if (stack->guard == PLUS_GUARD_WORD) {
        return;
    }
    assert(stack->guard != PLUS_GUARD_NONE);
    child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        ((volatile char *)stack->low)[-1] = 1;
        _exit(0);
    }
    assert(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
}

int
main(void)
{
    struct plus_stack_pool pool = {.stack_bytes = PLUS_STACK_BYTES_MIN};
    struct user users[COUNT] = {0};
    int asked = 0;

    for (int i = 0; i < COUNT; i++) {
        users[i].stack = plus_stack_take(&pool, &users[i]);
        assert(users[i].stack != NULL);
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
        check_guard(user->stack);
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
    puts("ok");
    return 0;
}
