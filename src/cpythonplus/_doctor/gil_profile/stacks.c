#define _GNU_SOURCE
#include "../../_interp/frames/frames.h"

#include "stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#define ROWS (1u << 14)
#define SLOTS (2u * ROWS)
#define FRAMES (1u << 19)

struct memory {
    struct plus_stack rows[ROWS];
    uint32_t slots[SLOTS]; /* open addressing by the hash; 0: free */
    struct plus_stack_frame frames[FRAMES];
};

/* Guarded by the GIL. */
static struct {
    struct memory *memory; /* NULL before the first begin; never unmapped */
    uint32_t count;        /* of rows, row 0 included */
    uint32_t frames;       /* used */
} S;

/* The calling thread's stack while it is read. */
struct reading {
    struct plus_stack_frame frames[PLUS_STACK_DEPTH];
    uint32_t depth;
    uint64_t hash;
};

int
plus_stacks_begin(void)
{
    if (S.memory == NULL) {
        void *memory = mmap(NULL, sizeof(struct memory), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) {
            return -errno;
        }
        S.memory = memory;
        S.count = 1;
    }
    return 0;
}

bool
plus_stacks_clear(void)
{
    uint32_t count = S.frames;

    if (S.memory == NULL) {
        return true;
    }
    PyCodeObject **codes = malloc((count + 1u) * sizeof(*codes));
    if (codes == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        codes[i] = S.memory->frames[i].code;
    }
    (void)madvise(S.memory, sizeof(*S.memory),
                  MADV_DONTNEED); /* private memory: it reads as 0 again */
    S.count = 1;
    S.frames = 0;
    /* Last, because the end of a code object may run Python code, and other threads. */
    for (uint32_t i = 0; i < count; i++) {
        Py_DECREF(codes[i]);
    }
    free(codes);
    return true;
}

uint32_t
plus_stacks_count(void)
{
    return S.memory != NULL ? S.count : 0;
}

struct plus_stack *
plus_stacks_row(uint32_t number)
{
    return &S.memory->rows[number];
}

static int
read_frame(PyCodeObject *code, int offset, void *argument)
{
    struct reading *reading = argument;

    if (reading->depth == PLUS_STACK_DEPTH) {
        return 1;
    }
    reading->frames[reading->depth++] = (struct plus_stack_frame){code, offset};
    reading->hash = (reading->hash ^ (uintptr_t)code ^ ((uint64_t)(unsigned)offset << 40)) *
                    UINT64_C(0x9E3779B97F4A7C15);
    reading->hash ^= reading->hash >> 29;
    return 0;
}

static bool
is_row(const struct plus_stack *row, const struct reading *reading)
{
    if (row->hash != reading->hash || row->depth != reading->depth) {
        return false;
    }
    for (uint32_t i = 0; i < row->depth; i++) {
        if (row->frames[i].code != reading->frames[i].code ||
            row->frames[i].offset != reading->frames[i].offset) {
            return false;
        }
    }
    return true;
}

/* Returns the new row, 0 if there is no room. */
static uint32_t
add(const struct reading *reading, bool is_cut)
{
    if (S.count == ROWS || FRAMES - S.frames < reading->depth) {
        return 0;
    }
    struct plus_stack_frame *frames = &S.memory->frames[S.frames];
    for (uint32_t i = 0; i < reading->depth; i++) {
        frames[i] = reading->frames[i];
        plus_compat_count((PyObject *)frames[i].code, 1);
    }
    S.frames += reading->depth;
    S.memory->rows[S.count] = (struct plus_stack){
        .hash = reading->hash, .frames = frames, .depth = reading->depth, .is_cut = is_cut};
    return S.count++;
}

uint32_t
plus_stacks_here(void)
{
    /* By the thread's own word, since it has no current thread state while it gives the GIL up.  A thread that runs
     * another interpreter's code is counted without a stack: its code objects may be under another GIL. */
    PyThreadState *tstate = PyGILState_GetThisThreadState();
    struct reading reading;
    bool is_cut = false;

    reading.depth = 0;
    reading.hash = 0;
    if (tstate != NULL && PyThreadState_GetInterpreter(tstate) == PyInterpreterState_Main()) {
        struct plus_frames frames = plus_frames_of_thread(tstate);
        is_cut = plus_frames_each(&frames, read_frame, &reading) != 0;
    }
    for (uint32_t slot = (uint32_t)reading.hash % SLOTS;; slot = (slot + 1u) % SLOTS) {
        uint32_t number = S.memory->slots[slot];
        if (number == 0) {
            number = add(&reading, is_cut);
            S.memory->slots[slot] = number;
            return number;
        }
        if (is_row(&S.memory->rows[number], &reading)) {
            return number;
        }
    }
}
