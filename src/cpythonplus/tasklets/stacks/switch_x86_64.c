/* switch.h for x86-64 (System V ABI).
 *
 * For the compiler plus_switch() is an ordinary call, so the caller has saved the registers that a callee may change.
 * It remains to save those that a callee preserves: rbx, rbp, r12 to r15, the control words of SSE and x87, and the
 * stack pointer.  The direction flag is clear by the same convention.  The return address is on the stack: `ret` on
 * the other stack continues where that one called.
 *
 * The frame at a parked stack's pointer:
 *
 *     sp ->  mxcsr, x87 control word   (4 + 4 bytes)
 *            r15  r14  r13  r12  rbx  rbp
 *            return address
 *
 * A fresh stack gets the same frame, with the trampoline as the return address and the entry in rbx: one path for fresh
 * and parked stacks.  Two words above keep it aligned: at the trampoline's `call` the stack pointer is a multiple of
 * 16. The control words are those of the preparing code.
 *
 * Debuggers and unwinders find the caller of a parked stack by the CFI lines.  In the trampoline rip is undefined and
 * rbp is 0: there the chain of frames ends.
 *
 * Rejected: inline assembly that names all registers as clobbered.  The compiler may keep a value relative to the stack
 * pointer across it, and inline it into both sides.  Rejected: swapcontext(3), see switch.h.
 */
#include "switch.h"

#if PLUS_HAS_SWITCH && defined(__x86_64__)

#include <stdint.h>

__asm__(".text\n"
        ".globl plus_switch\n"
        ".hidden plus_switch\n"
        ".type plus_switch, @function\n"
        ".p2align 4\n"
        "plus_switch:\n"
        "    .cfi_startproc\n"
        "    .irp register, rbp, rbx, r12, r13, r14, r15\n"
        "    pushq %\\register\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    .cfi_rel_offset %\\register, 0\n"
        "    .endr\n"
        "    subq $8, %rsp\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    stmxcsr (%rsp)\n"
        "    fnstcw 4(%rsp)\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    ldmxcsr (%rsp)\n"
        "    fldcw 4(%rsp)\n"
        "    addq $8, %rsp\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    .irp register, r15, r14, r13, r12, rbx, rbp\n"
        "    popq %\\register\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    .endr\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".size plus_switch, .-plus_switch\n"
        ".type switch_trampoline, @function\n"
        ".p2align 4\n"
        "switch_trampoline:\n"
        "    .cfi_startproc\n"
        "    .cfi_undefined %rip\n"
        "    xorl %ebp, %ebp\n"
        "    call *%rbx\n"
        "    ud2\n"
        "    .cfi_endproc\n"
        ".size switch_trampoline, .-switch_trampoline\n");

extern void
switch_trampoline(void) __attribute__((visibility("hidden")));

void *
plus_switch_prepare(void *top, void (*entry)(void))
{
    uintptr_t *sp = top;
    uint32_t mxcsr;
    uint16_t control;

    *--sp = 0; /* keeps the stack aligned at the trampoline's call */
    *--sp = 0;
    *--sp = (uintptr_t)switch_trampoline;
    *--sp = 0;                /* rbp */
    *--sp = (uintptr_t)entry; /* rbx */
    for (int i = 0; i < 4; i++) {
        *--sp = 0; /* r12 to r15 */
    }
    __asm__("stmxcsr %0" : "=m"(mxcsr));
    __asm__("fnstcw %0" : "=m"(control));
    *--sp = (uintptr_t)mxcsr | (uintptr_t)control << 32;
    return sp;
}

#endif
