/* Memory of a copy: sizes, zeroes, what came from before, an end; and the sort. */
#define _GNU_SOURCE
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "_base/memory/copy_memory.h"

#define REGION ((size_t)64 << 20)

static void
check_blocks(void)
{
    char *before = plus_malloc(100);
    char *large;

    assert(before != NULL);
    memset(before, 7, 100);
    assert(plus_copy_memory_begin(REGION) == 0);
    assert(plus_realloc(before, 200) == NULL);
    plus_free(before);
    assert(before[99] == 7);

    char *block = plus_calloc(3, 5), *next = plus_malloc(0), *other = plus_malloc(1);

    assert(block != NULL && next != NULL && other != NULL && next != other);
    assert((uintptr_t)block % 16 == 0 && (uintptr_t)other % 16 == 0);
    for (int i = 0; i < 15; i++) {
        assert(block[i] == 0);
    }
    memset(block, 1, 15);
    block = plus_realloc(block, 1000);
    assert(block != NULL && block[14] == 1);
    assert(plus_realloc(block, 10) == block);

    large = plus_malloc((size_t)8 << 20);
    assert(large != NULL);
    memset(large, 3, (size_t)8 << 20);
    large = plus_realloc(large, (size_t)16 << 20);
    assert(large != NULL && large[0] == 3 && large[((size_t)8 << 20) - 1] == 3);
    assert(block[14] == 1); /* its neighbour was given back */
    plus_free(large);
    plus_free(NULL);

    assert(plus_malloc(REGION) == NULL);
    assert(plus_malloc(SIZE_MAX - 8) == NULL);
    assert(plus_calloc(SIZE_MAX / 2, 3) == NULL);
}

static void
check_sort(void)
{
    struct {
        uintptr_t key;
        unsigned value;
    } items[1000];
    unsigned state = 1;

    for (size_t count = 0; count <= 1000; count = 2 * count + 1) {
        for (size_t i = 0; i < count; i++) {
            state = state * 1103515245U + 12345U;
            items[i].key = state >> 20;
            items[i].value = ~(unsigned)items[i].key;
        }
        plus_sort_by_word(items, count, sizeof items[0]);
        for (size_t i = 0; i < count; i++) {
            assert(i == 0 || items[i - 1].key <= items[i].key);
            assert(items[i].value == ~(unsigned)items[i].key);
        }
    }
}

int
main(void)
{
    int status;

    check_sort();
    char *block = plus_malloc(10); /* the C library's, in the parent */
    pid_t pid = fork();

    if (pid == 0) {
        check_blocks();
        _exit(0);
    }
    assert(waitpid(pid, &status, 0) == pid && status == 0);
    plus_free(block);
    return 0;
}
