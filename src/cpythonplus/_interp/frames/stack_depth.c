/* The data-flow pass: depth 0 at the start, the depths of the exception table at its handlers, and from there along
 * each fall-through and each jump until nothing new is found.
 *
 *     depths[unit]    UNREACHED, or the depth before that instruction; once set it does not change
 *     broken          an instruction was reached with two depths, left the function or is unknown: this code gets no
 *                     answer, ever
 *
 * The compiler relies on one depth for each instruction, whichever way it is reached.  So a disagreement means that an
 * effect was misunderstood.  Then no answer is the safe one: the caller visits less.
 *
 * The interpreter tells each instruction's effect on the depth (PyCompile_OpcodeStackEffectWithJump).  This file only
 * lists the instructions that jump or do not fall through, and the number of a call's operands; test_frames.py compares
 * them with `dis`.  The bytes are those of PyCode_GetCode(), without what was specialised or instrumented since.
 *
 * A code object is analysed once, at the first question; the result is kept in its extra space and freed with it.  No
 * jump leads to an exception handler; the table's entry tells its depth. */
#include "stack_depth.h"

#include "../../_base/raise.h"
#include "operand_kinds.h"

#include <opcode.h>

enum { UNREACHED = -1, UNIT = 2 /* bytes of an instruction, and of each of its cache entries */ };

/* The call sites of one code object, in the order of their offsets. */
struct call_sites {
    int count;
    struct plus_call_site sites[];
};

/* An entry of the exception table: instructions from `start` to before `end` lead to `target`. */
struct handler {
    int start, end, target, depth;
    bool keeps_offset; /* the offset of the failing instruction is pushed below the exception */
};

struct flow {
    PyCodeObject *code;
    const uint8_t *bytes; /* without specialised or instrumented instructions */
    int units, most;      /* length in units; co_stacksize */
    int *depths;          /* before each unit */
    bool changed, broken;
    /* For plus_stack_kinds(), else NULL: the kinds before each unit, `width` for each, and scratch space at the end. */
    uint8_t *kinds;
    int width;
};

/* The result of plus_stack_kinds(), kept with a code object. */
struct known_kinds {
    int units, width;
    int *depths;
    uint8_t *kinds;
};

struct instruction {
    int at, next; /* in units; next is behind the cache entries, and jumps count from it */
    int opcode, oparg;
};

/* Step to the next instruction; `ins` starts as all zero.  A prefix counts as an instruction. */
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

static uint8_t *
kinds_at(const struct flow *flow, int unit)
{
    return flow->kinds + (size_t)unit * (size_t)flow->width;
}

/* Note that `unit` is reached with this depth and these kinds (NULL if only depths are computed). */
static void
reach(struct flow *flow, int unit, int depth, const uint8_t *kinds)
{
    if (unit < 0 || unit >= flow->units || depth < 0 || depth > flow->most ||
        (flow->depths[unit] != UNREACHED && flow->depths[unit] != depth)) {
        flow->broken = true;
        return;
    }
    bool is_first = flow->depths[unit] == UNREACHED;

    flow->depths[unit] = depth;
    flow->changed |= is_first;
    for (int i = 0; kinds != NULL && i < flow->code->co_nlocalsplus + depth; i++) {
        uint8_t *there = &kinds_at(flow, unit)[i];
        uint8_t joined = is_first ? kinds[i] : plus_kinds_join(*there, kinds[i]);

        flow->changed |= *there != joined;
        *there = joined;
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

/* True for BUILD_LIST 0, COPY 2: the clauses of `except*` begin with it. */
static bool
begins_errors(const struct flow *flow, const struct instruction *ins)
{
    const uint8_t *next = &flow->bytes[ins->next * UNIT];

    return ins->opcode == BUILD_LIST && ins->oparg == 0 && ins->next < flow->units &&
           next[0] == COPY && next[1] == 2;
}

/* The kinds after the instruction; NULL if the caller asked for depths only. */
static const uint8_t *
kinds_after(struct flow *flow, const struct instruction *ins, int after)
{
    uint8_t *scratch = kinds_at(flow, flow->units);
    struct plus_instruction about = {.opcode = ins->opcode,
                                     .oparg = ins->oparg,
                                     .depth = flow->depths[ins->at],
                                     .after = after,
                                     .begins_errors = begins_errors(flow, ins)};

    if (flow->kinds == NULL || flow->broken || after < 0 || after > flow->most) {
        return NULL;
    }
    memcpy(scratch, kinds_at(flow, ins->at), (size_t)flow->width);
    plus_kinds_step(flow->code, scratch, &about);
    return scratch;
}

static bool
next_handler(const uint8_t **at, const uint8_t *end, struct handler *handler);

/* The handler of an instruction is reached with the kinds before that instruction. */
static void
reach_handler_of(struct flow *flow, int unit)
{
    PyObject *table = flow->code->co_exceptiontable;
    const uint8_t *at = (const uint8_t *)PyBytes_AS_STRING(table);
    const uint8_t *end = at + PyBytes_GET_SIZE(table);
    struct handler handler;

    while (next_handler(&at, end, &handler)) {
        int depth = handler.depth;

        if (unit < handler.start || unit >= handler.end || flow->depths[unit] < depth ||
            depth + handler.keeps_offset + 1 > flow->most) {
            continue;
        }
        uint8_t *scratch = kinds_at(flow, flow->units);
        uint8_t *top = scratch + flow->code->co_nlocalsplus + depth;

        memcpy(scratch, kinds_at(flow, unit), (size_t)flow->width);
        if (handler.keeps_offset) {
            *top++ = PLUS_KIND_OFFSET;
        }
        *top = PLUS_KIND_ERROR;
        reach(flow, handler.target, depth + handler.keeps_offset + 1, scratch);
        return;
    }
}

static void
follow(struct flow *flow)
{
    struct instruction ins = {0};

    while (!flow->broken && step(flow, &ins)) {
        if (flow->depths[ins.at] == UNREACHED) {
            continue;
        }
        if (flow->kinds != NULL) {
            reach_handler_of(flow, ins.at);
        }
        if (falls_through(ins.opcode)) {
            int after = depth_after(flow, &ins, 0);
            reach(flow, ins.next, after, kinds_after(flow, &ins, after));
        }
        int way = direction(ins.opcode);
        if (way != 0) {
            int after = depth_after(flow, &ins, 1);
            reach(flow, ins.next + way * ins.oparg, after, kinds_after(flow, &ins, after));
        }
    }
}

/* A number of the exception table: six bits a byte, the highest first; bit 64 is set if more follow. */
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

/* Each entry is start, length, target and depth.  The depth has a bit for pushing the offset of the failing instruction
 * below the exception. */
static bool
next_handler(const uint8_t **at, const uint8_t *end, struct handler *handler)
{
    if (*at >= end) {
        return false;
    }
    handler->start = table_number(at, end);
    handler->end = handler->start + table_number(at, end);
    handler->target = table_number(at, end);
    int depth = table_number(at, end);

    handler->depth = depth >> 1;
    handler->keeps_offset = depth & 1;
    return true;
}

static void
reach_handlers(struct flow *flow)
{
    PyObject *table = flow->code->co_exceptiontable;
    const uint8_t *at = (const uint8_t *)PyBytes_AS_STRING(table);
    const uint8_t *end = at + PyBytes_GET_SIZE(table);
    struct handler handler;

    while (next_handler(&at, end, &handler)) {
        reach(flow, handler.target, handler.depth + handler.keeps_offset + 1, NULL);
    }
}

static bool
find_depths(struct flow *flow)
{
    /* 3.11 and 3.12 count the value that starts a generator as being on its stack from the start. */
    int depth = PY_VERSION_HEX < 0x030D0000 &&
                (flow->code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR)) != 0;

    for (int unit = 0; unit < flow->units; unit++) {
        flow->depths[unit] = UNREACHED;
    }
    if (flow->kinds != NULL) {
        uint8_t *scratch = kinds_at(flow, flow->units);

        memset(scratch, PLUS_KIND_OBJECT, (size_t)flow->width);
        plus_kinds_begin(flow->code, scratch);
        reach(flow, 0, depth, scratch);
    }
    else {
        reach(flow, 0, depth, NULL);
        reach_handlers(flow);
    }
    while (flow->changed && !flow->broken) {
        flow->changed = false;
        follow(flow);
    }
    return !flow->broken;
}

enum {
    METHOD_OPERANDS = 2,                   /* of a call: callable and self, in either order */
    SEND_OPERANDS = PLUS_FOR_OPERANDS + 1, /* the sent value, too */
    /* For a `with` that an exception leaves: __exit__ (and from 3.14 on self), an offset, two exceptions. */
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
/* The unit behind the next CALL. */
static int
behind_call(const struct flow *flow, struct instruction ins)
{
    while (step(flow, &ins) && ins.opcode != CALL) {
    }
    return ins.next;
}
#endif

/* False if the instruction does not call. */
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
        /* The compiler counts the arguments as popped by PRECALL, but they are still on the stack. */
        site->depth += ins->oparg;
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
        return described(flow, site, PLUS_FOR_OPERANDS);
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

/* Write the call sites to `sites` unless it is NULL; returns their number. */
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

/* NULL if there is no memory. */
static struct call_sites *
analyse(PyCodeObject *code, PyObject *bytes)
{
    struct flow flow = {.code = code,
                        .bytes = (const uint8_t *)PyBytes_AS_STRING(bytes),
                        .units = (int)(PyBytes_GET_SIZE(bytes) / UNIT),
                        .most = code->co_stacksize};
    struct call_sites *calls = NULL;

    flow.depths = PyMem_RawMalloc(((size_t)flow.units + 1) * sizeof(int));
    if (flow.depths == NULL) {
        return NULL;
    }
    int count = find_depths(&flow) ? collect_calls(&flow, NULL) : 0;
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

/* The analysis of the code object, made at the first question; NULL if it cannot be made. */
static const struct call_sites *
calls_of(PyCodeObject *code)
{
    static Py_ssize_t place = -1; /* of the main interpreter, the only one with tasklets */
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
    struct flow flow = {.code = code, .most = code->co_stacksize};
    int depth = -1;

    if (bytes != NULL) {
        flow.bytes = (const uint8_t *)PyBytes_AS_STRING(bytes);
        flow.units = (int)(PyBytes_GET_SIZE(bytes) / UNIT);
        flow.depths = PyMem_RawMalloc(((size_t)flow.units + 1) * sizeof(int));
    }
    if (flow.depths != NULL && offset >= 0 && offset / UNIT < flow.units && find_depths(&flow) &&
        flow.depths[offset / UNIT] != UNREACHED) {
        depth = flow.depths[offset / UNIT];
    }
    PyMem_RawFree(flow.depths);
    Py_XDECREF(bytes);
    plus_raised_put(raised);
    return depth;
}

int
plus_stack_depth_waiting(PyCodeObject *code, int offset)
{
    const struct plus_call_site *site = plus_stack_depth_at(code, offset);
    struct plus_raised raised = plus_raised_take();
    PyObject *bytes = site == NULL ? PyCode_GetCode(code) : NULL;
    int depth = 0;

    if (site != NULL) {
        /* A `for` gives up the GIL only in its iterator, which it has until then. */
        depth = site->kind == PLUS_SITE_FOR ? site->depth : site->base;
    }
    else if (bytes != NULL && offset >= 0 && offset < PyBytes_GET_SIZE(bytes)) {
        int opcode = (uint8_t)PyBytes_AS_STRING(bytes)[offset];

        if (direction(opcode) < 0) {
            depth = plus_stack_depth_before(code, offset) +
                    PyCompile_OpcodeStackEffectWithJump(opcode, 0, 1);
        }
    }
    Py_XDECREF(bytes);
    plus_raised_put(raised);
    return depth > 0 ? depth : 0;
}

bool
plus_stack_has_event(PyCodeObject *code, int offset)
{
    PyObject *bytes = PyCode_GetCode(code);
    int unit = offset / UNIT, first = 0; /* first: the unit of an instruction's first prefix */
    bool found = false;

    if (bytes == NULL) {
        PyErr_Clear();
        return false;
    }
    struct flow flow = {.bytes = (const uint8_t *)PyBytes_AS_STRING(bytes),
                        .units = (int)(PyBytes_GET_SIZE(bytes) / UNIT)};

    for (struct instruction ins = {0}; !found && step(&flow, &ins);) {
        bool jumps = ins.opcode == JUMP_BACKWARD;

        found = (unit == first && (jumps || ins.opcode == RESUME)) ||
                (jumps && unit == ins.next - ins.oparg);
        if (ins.opcode != EXTENDED_ARG) {
            first = ins.next;
        }
    }
    Py_DECREF(bytes);
    return found && offset % UNIT == 0;
}

/* One block of memory; NULL if there is none, or the code is not understood. */
static struct known_kinds *
analyse_kinds(PyCodeObject *code, PyObject *bytes)
{
    struct flow flow = {.code = code,
                        .bytes = (const uint8_t *)PyBytes_AS_STRING(bytes),
                        .units = (int)(PyBytes_GET_SIZE(bytes) / UNIT),
                        .most = code->co_stacksize,
                        .width = code->co_nlocalsplus + code->co_stacksize};
    size_t units = (size_t)flow.units + 1; /* one more for scratch space */
    struct known_kinds *known =
        PyMem_RawCalloc(1, sizeof *known + units * sizeof(int) + units * (size_t)flow.width);

    if (known == NULL) {
        return NULL;
    }
    flow.depths = (int *)(known + 1);
    flow.kinds = (uint8_t *)(flow.depths + units);
    if (!find_depths(&flow)) {
        PyMem_RawFree(known);
        return NULL;
    }
    for (struct instruction ins = {0}; step(&flow, &ins);) {
        if (ins.opcode == FOR_ITER && flow.depths[ins.at] >= PLUS_FOR_OPERANDS) {
            /* A frame at this instruction has called the iterator's __next__. */
            kinds_at(&flow,
                     ins.at)[code->co_nlocalsplus + flow.depths[ins.at] - PLUS_FOR_OPERANDS] =
                PLUS_KIND_ITERATOR;
        }
    }
    *known = (struct known_kinds){flow.units, flow.width, flow.depths, flow.kinds};
    return known;
}

int
plus_stack_kinds(PyCodeObject *code, int offset, const uint8_t **kinds)
{
    static Py_ssize_t place = -1;
    struct plus_raised raised = plus_raised_take();
    void *kept = NULL;

    if (place < 0) {
        place = PyUnstable_Eval_RequestCodeExtraIndex(PyMem_RawFree);
    }
    if (place >= 0 && PyUnstable_Code_GetExtra((PyObject *)code, place, &kept) == 0 &&
        kept == NULL) {
        PyObject *bytes = PyCode_GetCode(code);

        kept = bytes == NULL ? NULL : analyse_kinds(code, bytes);
        Py_XDECREF(bytes);
        if (kept != NULL && PyUnstable_Code_SetExtra((PyObject *)code, place, kept) < 0) {
            PyMem_RawFree(kept);
            kept = NULL;
        }
    }
    plus_raised_put(raised);
    const struct known_kinds *known = kept;
    int unit = offset / UNIT;

    if (known == NULL || offset < 0 || offset % UNIT != 0 || unit >= known->units ||
        known->depths[unit] == UNREACHED) {
        return -1;
    }
    *kinds = known->kinds + (size_t)unit * (size_t)known->width;
    return known->depths[unit];
}
