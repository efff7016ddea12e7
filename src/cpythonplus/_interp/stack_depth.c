/* The data-flow pass: depth 0 at the start, the depths of the exception table at its handlers, and from there along
 * each fall-through and each jump until nothing new is found.
 *
 *     depths[unit]    UNREACHED, or the depth before that instruction; once set it does not change
 *     broken          an instruction was reached with two depths, left the function or is unknown: then nothing is said
 *                     about this code, ever
 *
 * The compiler relies on one depth for each instruction, whichever way it is reached.  So a disagreement means that an
 * effect is not as it was understood, and saying nothing is the safe answer: what asks visits less.
 *
 * What each instruction does to the depth is asked of the interpreter (PyCompile_OpcodeStackEffectWithJump).  Only
 * which of them jump, which do not fall through, and how many operands a call has stands here, and test_frames.py
 * compares it with `dis`.  The bytes are those of PyCode_GetCode(), without what was specialised or instrumented
 * since.
 *
 * A code object is gone through once, at the first question; what was found is kept in its extra space and freed with
 * it. An exception table's entry tells the depth at its handler, which no jump leads to. */
#include "stack_depth.h"

#include "../_base/raise.h"

#include <opcode.h>
#include <stdint.h>
#include <stdlib.h>

enum { UNREACHED = -1, UNIT = 2 /* bytes of an instruction, and of each of its cache entries */ };

/* Of one code object, in the order of their offsets. */
struct call_sites {
    int count;
    struct plus_call_site sites[];
};

struct flow {
    const uint8_t *bytes; /* without specialised or instrumented instructions */
    int units, most;      /* length in units; the depth that the compiler allowed for */
    int *depths;          /* before each unit */
    bool changed, broken;
};

struct instruction {
    int at, next; /* units; next: behind the cache entries, where jumps count from */
    int opcode, oparg;
};

/* Steps to the next instruction; starts with all zero.  A prefix counts as an instruction. */
static bool
step(const struct flow *flow, struct instruction *ins)
{
    int prefix = ins->opcode == EXTENDED_ARG ? ins->oparg : 0;

    if (ins->next >= flow->units) {
        return false;
    }
    ins->at = ins->next++;
    ins->opcode = flow->bytes[ins->at * UNIT];
    ins->oparg = (int)((unsigned)prefix << 8 | flow->bytes[ins->at * UNIT + 1]);
    while (ins->next < flow->units && flow->bytes[ins->next * UNIT] == CACHE) {
        ins->next++;
    }
    return true;
}

static void
reach(struct flow *flow, int unit, int depth)
{
    if (unit < 0 || unit >= flow->units || depth < 0 || depth > flow->most) {
        flow->broken = true;
    }
    else if (flow->depths[unit] == UNREACHED) {
        flow->depths[unit] = depth;
        flow->changed = true;
    }
    else if (flow->depths[unit] != depth) {
        flow->broken = true;
    }
}

/* 1: jumps forward, -1: backward, 0: does not jump. */
static int
direction(int opcode)
{
    switch (opcode) {
    case FOR_ITER:
    case JUMP_FORWARD:
    case SEND:
#if PY_VERSION_HEX < 0x030C0000
    case JUMP_IF_FALSE_OR_POP:
    case JUMP_IF_TRUE_OR_POP:
    case POP_JUMP_FORWARD_IF_FALSE:
    case POP_JUMP_FORWARD_IF_TRUE:
    case POP_JUMP_FORWARD_IF_NONE:
    case POP_JUMP_FORWARD_IF_NOT_NONE:
#else
    case POP_JUMP_IF_FALSE:
    case POP_JUMP_IF_TRUE:
    case POP_JUMP_IF_NONE:
    case POP_JUMP_IF_NOT_NONE:
#endif
        return 1;
    case JUMP_BACKWARD:
    case JUMP_BACKWARD_NO_INTERRUPT:
#if PY_VERSION_HEX < 0x030C0000
    case POP_JUMP_BACKWARD_IF_FALSE:
    case POP_JUMP_BACKWARD_IF_TRUE:
    case POP_JUMP_BACKWARD_IF_NONE:
    case POP_JUMP_BACKWARD_IF_NOT_NONE:
#endif
        return -1;
    default:
        return 0;
    }
}

static bool
falls_through(int opcode)
{
    switch (opcode) {
    case JUMP_FORWARD:
    case JUMP_BACKWARD:
    case JUMP_BACKWARD_NO_INTERRUPT:
    case RETURN_VALUE:
    case RAISE_VARARGS:
    case RERAISE:
#if PY_VERSION_HEX >= 0x030C0000 && PY_VERSION_HEX < 0x030E0000
    case RETURN_CONST:
#endif
#if PY_VERSION_HEX >= 0x030C0000
    case INTERPRETER_EXIT:
#endif
        return false;
    default:
        return true;
    }
}

static int
depth_after(struct flow *flow, const struct instruction *ins, int jumps)
{
    int effect = ins->opcode == EXTENDED_ARG
                     ? 0
                     : PyCompile_OpcodeStackEffectWithJump(ins->opcode, ins->oparg, jumps);

    if (effect == PY_INVALID_STACK_EFFECT) {
        flow->broken = true;
        return 0;
    }
    return flow->depths[ins->at] + effect;
}

static void
follow(struct flow *flow)
{
    struct instruction ins = {0};

    while (!flow->broken && step(flow, &ins)) {
        if (flow->depths[ins.at] == UNREACHED) {
            continue;
        }
        if (falls_through(ins.opcode)) {
            reach(flow, ins.next, depth_after(flow, &ins, 0));
        }
        int way = direction(ins.opcode);
        if (way != 0) {
            reach(flow, ins.next + way * ins.oparg, depth_after(flow, &ins, 1));
        }
    }
}

/* A number of the exception table: six bits a byte, the highest first; 64: more follow. */
static int
table_number(const uint8_t **at, const uint8_t *end)
{
    unsigned value = 0;

    while (*at < end) {
        uint8_t byte = *(*at)++;
        value = value << 6 | (byte & 63);
        if (!(byte & 64)) {
            break;
        }
    }
    return (int)value;
}

/* Each entry is start, length, target and depth, the depth with a bit that says that the offset of
 * the failing instruction is pushed below the exception. */
static void
reach_handlers(struct flow *flow, PyObject *table)
{
    const uint8_t *at = (const uint8_t *)PyBytes_AS_STRING(table);
    const uint8_t *end = at + PyBytes_GET_SIZE(table);

    while (at < end) {
        (void)table_number(&at, end);
        (void)table_number(&at, end);
        int target = table_number(&at, end);
        int depth = table_number(&at, end);
        reach(flow, target, (depth >> 1) + (depth & 1) + 1);
    }
}

static bool
find_depths(struct flow *flow, PyCodeObject *code)
{
    for (int unit = 0; unit < flow->units; unit++) {
        flow->depths[unit] = UNREACHED;
    }
    /* 3.11 and 3.12 count what a generator is first sent as there from the start. */
    reach(flow, 0,
          PY_VERSION_HEX < 0x030D0000 &&
              (code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR)) != 0);
    reach_handlers(flow, code->co_exceptiontable);
    while (flow->changed && !flow->broken) {
        flow->changed = false;
        follow(flow);
    }
    return !flow->broken;
}

enum {
    METHOD_OPERANDS = 2, /* of a call: callable and self, in either order */
    /* What is iterated, and from 3.15 on how far; to SEND also what is sent. */
    FOR_OPERANDS = PY_VERSION_HEX < 0x030F0000 ? 1 : 2,
    SEND_OPERANDS = FOR_OPERANDS + 1,
    /* Of a `with` that an exception leaves: __exit__ (and from 3.14 on self), an offset, two exceptions. */
    EXIT_OPERANDS = PY_VERSION_HEX < 0x030E0000 ? 4 : 5,
};

static bool
described(const struct flow *flow, struct plus_call_site *site, int taken)
{
    site->base = site->depth - taken;
    site->kept += site->kind == PLUS_SITE_CALL ? site->base : site->depth;
    return flow->depths[site->offset / UNIT] != UNREACHED && site->base >= 0;
}

#if PY_VERSION_HEX < 0x030C0000
/* The unit behind the CALL that follows. */
static int
behind_call(const struct flow *flow, struct instruction ins)
{
    while (step(flow, &ins) && ins.opcode != CALL) {
    }
    return ins.next;
}
#endif

/* False: the instruction does not call. */
static bool
describe_call(const struct flow *flow, const struct instruction *ins, struct plus_call_site *site)
{
    *site = (struct plus_call_site){.offset = ins->at * UNIT,
                                    .next = ins->next * UNIT,
                                    .oparg = ins->oparg,
                                    .depth = flow->depths[ins->at],
                                    .unpacked = -1};
    switch (ins->opcode) {
#if PY_VERSION_HEX < 0x030C0000
    case PRECALL:
        site->next = behind_call(flow, *ins) * UNIT;
        return described(flow, site, ins->oparg + METHOD_OPERANDS);
    case CALL:
        site->depth +=
            ins->oparg; /* the compiler's books let PRECALL take the arguments; it leaves them */
        return described(flow, site, ins->oparg + METHOD_OPERANDS);
#else
    case CALL:
        return described(flow, site, ins->oparg + METHOD_OPERANDS);
#endif
#if PY_VERSION_HEX >= 0x030D0000
    case CALL_KW:
        return described(flow, site, ins->oparg + METHOD_OPERANDS + 1);
#endif
    case CALL_FUNCTION_EX: {
        int mapping = PY_VERSION_HEX >= 0x030E0000 ? 1 : ins->oparg & 1;
        site->unpacked = site->depth - 1 - mapping;
        return described(flow, site, METHOD_OPERANDS + 1 + mapping);
    }
    case FOR_ITER:
        site->kind = PLUS_SITE_FOR;
        return described(flow, site, FOR_OPERANDS);
    case SEND:
        site->kind = PLUS_SITE_SEND;
        site->kept = -1;
        return described(flow, site, SEND_OPERANDS);
    case WITH_EXCEPT_START:
        site->kind = PLUS_SITE_EXIT;
        return described(flow, site, EXIT_OPERANDS);
    default:
        return false;
    }
}

/* Writes to `sites` unless it is NULL; returns how many there are. */
static int
collect_calls(const struct flow *flow, struct plus_call_site *sites)
{
    struct instruction ins = {0};
    struct plus_call_site site;
    int count = 0;

    while (step(flow, &ins)) {
        if (describe_call(flow, &ins, &site)) {
            if (sites != NULL) {
                sites[count] = site;
            }
            count++;
        }
    }
    return count;
}

/* NULL: no memory. */
static struct call_sites *
analyse(PyCodeObject *code, PyObject *bytes)
{
    struct flow flow = {.bytes = (const uint8_t *)PyBytes_AS_STRING(bytes),
                        .units = (int)(PyBytes_GET_SIZE(bytes) / UNIT),
                        .most = code->co_stacksize};
    struct call_sites *calls = NULL;

    flow.depths = PyMem_RawMalloc(((size_t)flow.units + 1) * sizeof(int));
    if (flow.depths == NULL) {
        return NULL;
    }
    int count = find_depths(&flow, code) ? collect_calls(&flow, NULL) : 0;
    calls = PyMem_RawMalloc(sizeof(*calls) + (size_t)count * sizeof(calls->sites[0]));
    if (calls != NULL) {
        calls->count = count;
        if (count > 0) {
            collect_calls(&flow, calls->sites);
        }
    }
    PyMem_RawFree(flow.depths);
    return calls;
}

/* What the code object keeps for us; made when it is first asked for.  NULL: it cannot be. */
static const struct call_sites *
calls_of(PyCodeObject *code)
{
    static Py_ssize_t place = -1; /* of the main interpreter, the only one that has tasklets */
    void *kept = NULL;

    if (place < 0) {
        place = PyUnstable_Eval_RequestCodeExtraIndex(PyMem_RawFree);
    }
    if (place < 0 || PyUnstable_Code_GetExtra((PyObject *)code, place, &kept) < 0 || kept != NULL) {
        return kept;
    }
    PyObject *bytes = PyCode_GetCode(code);
    if (bytes != NULL) {
        kept = analyse(code, bytes);
        Py_DECREF(bytes);
    }
    if (kept != NULL && PyUnstable_Code_SetExtra((PyObject *)code, place, kept) < 0) {
        PyMem_RawFree(kept);
        kept = NULL;
    }
    return kept;
}

static int
compare_offsets(const void *key, const void *member)
{
    int offset = *(const int *)key;
    const struct plus_call_site *site = member;

    return (offset > site->offset) - (offset < site->offset);
}

const struct plus_call_site *
plus_stack_depth_at(PyCodeObject *code, int offset)
{
    struct plus_raised raised = plus_raised_take();

    const struct call_sites *calls = calls_of(code);
    plus_raised_put(raised);
    if (calls == NULL || calls->count == 0) {
        return NULL;
    }
    return bsearch(&offset, calls->sites, (size_t)calls->count, sizeof(calls->sites[0]),
                   compare_offsets);
}

const struct plus_call_site *
plus_stack_depth_around(PyCodeObject *code, int offset)
{
    struct plus_raised raised = plus_raised_take();
    const struct call_sites *calls = calls_of(code);
    int low = 0, high = calls == NULL ? 0 : calls->count;

    plus_raised_put(raised);
    while (low < high) {
        int middle = (low + high) / 2;
        if (calls->sites[middle].offset <= offset) {
            low = middle + 1;
        }
        else {
            high = middle;
        }
    }
    return low > 0 && offset < calls->sites[low - 1].next ? &calls->sites[low - 1] : NULL;
}

int
plus_stack_depth_before(PyCodeObject *code, int offset)
{
    struct plus_raised raised = plus_raised_take();
    PyObject *bytes = PyCode_GetCode(code);
    struct flow flow = {.most = code->co_stacksize};
    int depth = -1;

    if (bytes != NULL) {
        flow.bytes = (const uint8_t *)PyBytes_AS_STRING(bytes);
        flow.units = (int)(PyBytes_GET_SIZE(bytes) / UNIT);
        flow.depths = PyMem_RawMalloc(((size_t)flow.units + 1) * sizeof(int));
    }
    if (flow.depths != NULL && offset >= 0 && offset / UNIT < flow.units &&
        find_depths(&flow, code) && flow.depths[offset / UNIT] != UNREACHED) {
        depth = flow.depths[offset / UNIT];
    }
    PyMem_RawFree(flow.depths);
    Py_XDECREF(bytes);
    plus_raised_put(raised);
    return depth;
}
