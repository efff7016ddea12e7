#define _GNU_SOURCE
#include "pools.h"

#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

bool
plus_read_memory(uintptr_t address, void *copy, size_t count_bytes)
{
    struct iovec here = {copy, count_bytes};
    struct iovec there = {(void *)address, count_bytes};

    return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == (ssize_t)count_bytes;
}

bool
plus_read_pools(uintptr_t first, struct plus_pool_header *headers, size_t count)
{
    struct iovec here = {headers, count * sizeof *headers};
    struct iovec there[PLUS_POOLS_AT_ONCE];

    if (count == 0 || count > PLUS_POOLS_AT_ONCE) {
        return count == 0;
    }
    for (size_t i = 0; i < count; i++) {
        there[i] = (struct iovec){(void *)(first + i * PLUS_POOL_BYTES), sizeof *headers};
    }
    return process_vm_readv(getpid(), &here, 1, there, count, 0) == (ssize_t)here.iov_len;
}
