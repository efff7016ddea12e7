/* Whether the processor keeps a shadow stack for this thread; see plus_switch_refusal in switch.h.
 *
 * With a shadow stack, a return to an address that was not called from there is a fault, and every switch of stacks
 * looks like that.  So tasklets are refused then, at the import, instead of a SIGSEGV at the first switch.
 *
 * The kernel is asked, not the processor or the C library, which only tell what is possible.  A shadow stack is
 * switched on before a program begins, and threads inherit it, so one question per process is enough.  A kernel that
 * does not know the question has no shadow stacks.
 *
 * If there is no switch for the processor, this file defines its two functions, which are never called.
 *
 * Rejected: switching the shadow stack as well.  That takes a second stack for each tasklet from map_shadow_stack(2),
 * and no distribution's Python runs with shadow stacks yet.
 */
#define _GNU_SOURCE /* syscall */
#include "switch.h"

#include <stddef.h>
#include <stdlib.h>

#ifdef __linux__
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SHSTK_STATUS 0x5005           /* arch_prctl(2): Linux 6.6, x86-64 */
#define GET_SHADOW_STACK_STATUS 74    /* prctl(2): Linux 6.13, aarch64 and RISC-V */
#define SHADOW_STACK_ON ((uint64_t)1) /* the bit in the status of either */
#endif

#if !PLUS_HAS_SWITCH
void
plus_switch(void **save, void *to)
{
    abort();
}

void *
plus_switch_prepare(void *top, void (*entry)(void))
{
    abort();
}
#endif

const char *
plus_switch_refusal(void)
{
#if !PLUS_HAS_SWITCH
    return "there is no code for this processor to go from one C stack to another; there is for "
           "x86-64 and aarch64";
#endif
#ifdef __linux__
    uint64_t status = 0;
#ifdef SYS_arch_prctl
    long failed = syscall(SYS_arch_prctl, SHSTK_STATUS, &status);
#else
    long failed = syscall(SYS_prctl, GET_SHADOW_STACK_STATUS, &status, 0, 0, 0);
#endif
    if (failed == 0 &&
        (status & SHADOW_STACK_ON)) { /* unset or failed: older kernel, or processor without */
        return "this process runs with shadow stacks, which forbid switching "
               "(glibc.cpu.x86_shstk=off)";
    }
#endif
    return NULL;
}
