#include "pyframe.h"

#include "live_frames.h"

typedef struct _PyInterpreterFrame Frame;

static int
visit_frame(const Frame *frame, int (*visit)(PyCodeObject *, int, PyObject *, void *), void *arg)
{
    PyCodeObject *code = plus_pyframe_code(frame);
    int stop = visit(code, -1, (PyObject *)code, arg);

    for (int i = 0; stop == 0 && i < code->co_nlocalsplus; i++) {
        PyObject *value = plus_pyframe_variable(frame, i);
        if (value != NULL) {
            stop = visit(code, i, value, arg);
        }
    }
    return stop;
}

int
plus_live_frames_visit(int (*visit)(PyCodeObject *code, int index, PyObject *value, void *arg),
                       void *arg)
{
    PyThreadState *tstate = PyInterpreterState_ThreadHead(PyInterpreterState_Get());

    for (; tstate != NULL; tstate = PyThreadState_Next(tstate)) {
        for (Frame *home = plus_pyframe_top(tstate), *frame; home != NULL; home = frame->previous) {
            frame = plus_pyframe_at(home);
            int stop = plus_pyframe_has_begun(frame) ? visit_frame(frame, visit, arg) : 0;
            if (stop != 0) {
                return stop;
            }
        }
    }
    return 0;
}
