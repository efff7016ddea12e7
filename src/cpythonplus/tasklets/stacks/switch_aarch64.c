/* switch.h for aarch64 (AAPCS64).
 *
 * As on x86-64, the registers that a callee preserves are saved: x19 to x28, the frame pointer, the link register, the
 * low halves of v8 to v15, the floating-point control register, the stack pointer.  x18 belongs to the platform and is
 * left alone.  The floating-point status register (exceptions that have occurred) belongs to the thread, not to the
 * tasklet.
 *
 * The frame at a parked stack's pointer, 176 bytes:
 *
 *     sp ->  x19 ... x28  x29 (frame pointer)  x30 (where to go on)
 *            d8 ... d15
 *            fpcr  (padding)
 *
 * A fresh stack gets the same frame, with the trampoline in x30 and the entry in x19.  fpcr is written only if the two
 * differ, because writing it makes the processor wait for all earlier instructions.
 *
 * Pointer authentication: callers sign their own return addresses, by a stack pointer that is the same when they
 * return. x30 here is never signed.  Branch targets: the `hint` is a landing pad; `ret` needs none.
 *
 * Unwinders find the caller by the CFI lines; in the trampoline x30 is undefined and x29 is 0.
 */
#include "switch.h"

#if PLUS_HAS_SWITCH && defined(__aarch64__)

#include <stdint.h>
#include <string.h>

#define FRAME_WORDS 22

__asm__(".text\n"
        ".globl plus_switch\n"
        ".hidden plus_switch\n"
        ".type plus_switch, %function\n"
        ".p2align 4\n"
        "plus_switch:\n"
        "    .cfi_startproc\n"
        "    hint #34\n" /* bti c: may be called through a pointer where branches are guarded */
        "    sub sp, sp, #176\n"
        "    .cfi_def_cfa_offset 176\n"
        "    stp x19, x20, [sp, #0]\n"
        "    stp x21, x22, [sp, #16]\n"
        "    stp x23, x24, [sp, #32]\n"
        "    stp x25, x26, [sp, #48]\n"
        "    stp x27, x28, [sp, #64]\n"
        "    stp x29, x30, [sp, #80]\n"
        "    .irp number, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30\n"
        "    .cfi_offset x\\number, 8 * (\\number - 19) - 176\n"
        "    .endr\n"
        "    stp d8, d9, [sp, #96]\n"
        "    stp d10, d11, [sp, #112]\n"
        "    stp d12, d13, [sp, #128]\n"
        "    stp d14, d15, [sp, #144]\n"
        "    mrs x9, fpcr\n"
        "    str x9, [sp, #160]\n"
        "    mov x10, sp\n"
        "    str x10, [x0]\n"
        "    mov sp, x1\n"
        "    ldr x11, [sp, #160]\n"
        "    cmp x9, x11\n"
        "    b.eq 1f\n"
        "    msr fpcr, x11\n"
        "1:\n"
        "    ldp x19, x20, [sp, #0]\n"
        "    ldp x21, x22, [sp, #16]\n"
        "    ldp x23, x24, [sp, #32]\n"
        "    ldp x25, x26, [sp, #48]\n"
        "    ldp x27, x28, [sp, #64]\n"
        "    ldp x29, x30, [sp, #80]\n"
        "    ldp d8, d9, [sp, #96]\n"
        "    ldp d10, d11, [sp, #112]\n"
        "    ldp d12, d13, [sp, #128]\n"
        "    ldp d14, d15, [sp, #144]\n"
        "    add sp, sp, #176\n"
        "    .cfi_def_cfa_offset 0\n"
        "    .irp number, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30\n"
        "    .cfi_restore x\\number\n"
        "    .endr\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".size plus_switch, .-plus_switch\n"
        ".type switch_trampoline, %function\n"
        ".p2align 4\n"
        "switch_trampoline:\n"
        "    .cfi_startproc\n"
        "    .cfi_undefined x30\n"
        "    mov x29, xzr\n"
        "    blr x19\n"
        "    brk #1\n"
        "    .cfi_endproc\n"
        ".size switch_trampoline, .-switch_trampoline\n");

extern void
switch_trampoline(void) __attribute__((visibility("hidden")));

void *
plus_switch_prepare(void *top, void (*entry)(void))
{
    uint64_t *sp = (uint64_t *)top - FRAME_WORDS;
    uint64_t fpcr;

    memset(sp, 0, FRAME_WORDS * sizeof(uint64_t));
    __asm__("mrs %0, fpcr" : "=r"(fpcr));
    sp[0] = (uint64_t)(uintptr_t)entry;
    sp[11] = (uint64_t)(uintptr_t)switch_trampoline;
    sp[20] = fpcr;
    return sp;
}

#endif
