#include "pyframe.h"

#include "live_frames.h"

#include "../../_base/memory/copy_memory.h"
#include "../../_base/memory/own_memory.h"
#include "frames.h"

#define MOST_FRAMES 1000

typedef struct _PyInterpreterFrame Frame;

struct living {
    Frame *frame, *callee; /* callee: the next inner one; NULL for the innermost */
    bool is_suspended;
};

static struct {
    struct living *frames; /* of greenlets */
    size_t count, room;
    bool with_unnamed;
} noted; /* only in a copy of the process */

struct visiting {
    PyCodeObject *code;
    int (*visit)(PyCodeObject *, int, PyObject *, void *);
    void *arg;
};

static int
visit_unnamed(PyObject *op, void *arg)
{
    const struct visiting *it = arg;

    return it->visit(it->code, it->code->co_nlocalsplus, op, it->arg);
}

static int
visit_frame(struct living living, int (*visit)(PyCodeObject *, int, PyObject *, void *), void *arg)
{
    struct visiting it = {plus_pyframe_code(living.frame), visit, arg};
    int stop = visit(it.code, -1, (PyObject *)it.code, arg);

    for (int i = 0; stop == 0 && i < it.code->co_nlocalsplus; i++) {
        PyObject *value = plus_pyframe_variable(living.frame, i);
        if (value != NULL) {
            stop = visit(it.code, i, value, arg);
        }
    }
    if (stop != 0 || !noted.with_unnamed) {
        return stop;
    }
    /* The innermost function of a thread may be between two instructions: it is not known to be inside a call. */
    stop = plus_frames_visit_unnamed(living.frame, living.callee, !living.is_suspended,
                                     visit_unnamed, &it);
    return stop != 0 || living.callee != NULL || living.is_suspended
               ? stop
               : plus_frames_visit_waiting(living.frame, visit_unnamed, &it);
}

int
plus_live_frames_visit(int (*visit)(PyCodeObject *code, int index, PyObject *value, void *arg),
                       void *arg)
{
    PyThreadState *tstate = PyInterpreterState_ThreadHead(PyInterpreterState_Get());
    int stop = 0;

    for (; tstate != NULL; tstate = PyThreadState_Next(tstate)) {
        struct living it = {NULL, NULL, false};
        for (Frame *home = plus_pyframe_top(tstate); home != NULL && stop == 0;
             home = it.frame->previous) {
            it.frame = plus_pyframe_at(home);
            if (plus_pyframe_has_begun(it.frame)) {
                stop = visit_frame(it, visit, arg);
                it.callee = it.frame;
            }
        }
    }
    for (size_t i = 0; i < noted.count && stop == 0; i++) {
        stop = visit_frame(noted.frames[i], visit, arg);
    }
    return stop;
}

void
plus_live_frames_ask_unnamed(void)
{
    const char *refusal;

    noted.with_unnamed = plus_fact_state(PLUS_FACT_OPERANDS, &refusal) == PLUS_FACT_PROVEN;
}

/* greenlet keeps the stack of a suspended greenlet whole, and from 3.12 on takes the interpreter's own frames out of the
 * chain, since they lie on a C stack that others use meanwhile.  The address is checked nevertheless. */
static bool
is_frame(const Frame *frame)
{
    Frame copy;
    PyObject code;

    return plus_read_memory((uintptr_t)frame, &copy, sizeof copy) &&
           plus_pyframe_is_python(&copy) && copy.owner != FRAME_OWNED_BY_FRAME_OBJECT &&
           plus_read_memory((uintptr_t)plus_pyframe_executable(&copy), &code, sizeof code) &&
           PyCode_Check(&code);
}

int
plus_live_frames_note(PyFrameObject *innermost)
{
    Frame *frame = plus_pyframe_of(innermost), *callee = NULL;

    for (int depth = 0; depth < MOST_FRAMES && is_frame(frame); depth++) {
        struct living *frames =
            plus_room_for_one(noted.frames, noted.count, &noted.room, 64, sizeof *frames);
        if (frames == NULL) {
            return -ENOMEM;
        }
        noted.frames = frames;
        if (plus_pyframe_has_begun(frame)) {
            noted.frames[noted.count++] = (struct living){frame, callee, true};
            callee = frame;
        }
        if (frame->previous == NULL) {
            break;
        }
        frame = plus_pyframe_at(frame->previous);
    }
    return 0;
}
