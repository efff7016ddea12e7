/* A kernel that says that the calling thread has a shadow stack; preloaded by test_engine.py. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <stdint.h>

__attribute__((visibility("default"))) long
syscall(long number, ...)
{
    long arguments[6];
    va_list rest;

    va_start(rest, number);
    for (int i = 0; i < 6; i++) {
        arguments[i] = va_arg(rest, long);
    }
    va_end(rest);
    if (arguments[0] == 0x5005 || arguments[0] == 74) {
        *(uint64_t *)arguments[1] = 1;
        return 0;
    }
    long (*real)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");

    return real(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4],
                arguments[5]);
}
