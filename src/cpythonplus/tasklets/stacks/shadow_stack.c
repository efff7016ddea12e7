/* Whether the processor keeps a shadow stack for this thread; see plus_switch_refusal in switch.h.
 *
 * With one, a return to an address that was not called from there is a fault, and that is what any change of
 * stacks looks like.  So there are no tasklets then; better a refusal at the import than SIGSEGV at the first switch.
 *
 * The kernel is asked, not the processor or the C library: those tell what there could be.  A shadow stack is switched
 * on before a program begins, and its threads inherit it, so one question for the process is enough.  A kernel that
 * does not know the question has none.
 *
 * Where there is no switch for the processor, this file has its two functions, which are never called.
 *
 * Rejected: to switch the shadow stack as well.  It takes a second stack for each tasklet from
 * map_shadow_stack(2), and no distribution's Python runs with one yet.
 */
#define _GNU_SOURCE /* syscall */
#include "switch.h"

#include <stddef.h>
#include <stdlib.h>

#ifdef __linux__
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SHSTK_STATUS 0x5005           /* of arch_prctl(2): Linux 6.6, x86-64 */
#define GET_SHADOW_STACK_STATUS 74    /* of prctl(2): Linux 6.13, aarch64 and RISC-V */
#define SHADOW_STACK_ON ((uint64_t)1) /* in what either of them says */
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
        (status & SHADOW_STACK_ON)) { /* else an older kernel, or a processor without */
        return "this process runs with shadow stacks, which forbid switching "
               "(glibc.cpu.x86_shstk=off)";
    }
#endif
    return NULL;
}
