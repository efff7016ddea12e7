/* How a chain of frames is taken off a C stack.
 *
 * The evaluation loop and the C code that called it hold references that they drop only when they return.  So the
 * functions are left as by an exception, without running their handlers: each frame gets a copy of its code object
 * without exception table (co_exceptiontable), and its instruction pointer is set before the first traceable
 * instruction.  The loop finds no handler, drops variables and operands, and goes on with the frame below.  Such a
 * frame gets no frame object and no entry in the traceback.
 *
 * The copy, a twin, has the same variables and the same depth of operand stack, which the loop reads on the way.  The
 * twin is kept in the code object's extra space and freed with it.
 *
 * Tracers and monitoring tools would see events on the way, so callers refuse while any is active.
 */
#include "../frames/pyframe.h"

#include "frame_leave.h"

#include "../facts/probe_call.h"
#include "../frames/instrumentation.h"
#include "../frames/stack_depth.h"
#include "frame_build.h"

#include "../../_base/raise.h"

typedef struct _PyInterpreterFrame Frame;

static Py_ssize_t place = -1;

static void
drop(void *twin)
{
    Py_XDECREF((PyObject *)twin);
}

/* The new twin, borrowed; NULL with an exception. */
static PyObject *
make_twin(PyCodeObject *code)
{
    PyObject *twin =
        plus_code_replace((PyObject *)code, Py_BuildValue("{sy}", "co_exceptiontable", ""));

    if (twin != NULL) {
        PyCodeObject *made = (PyCodeObject *)twin;

        /* Instructions before this index are not instrumented. */
        made->_co_firsttraceable = (int)Py_SIZE(made);
        if (made->co_nlocalsplus != code->co_nlocalsplus || Py_SIZE(made) != Py_SIZE(code) ||
            made->co_stacksize != code->co_stacksize || !plus_instrumentation_give_data(made) ||
            PyUnstable_Code_SetExtra((PyObject *)code, place, twin) < 0) {
            Py_CLEAR(twin);
        }
    }
    return twin;
}

/* The twin, borrowed; NULL without an exception. */
static PyObject *
twin_of(PyCodeObject *code, bool make)
{
    void *kept = NULL;

    if (place < 0) {
        place = PyUnstable_Eval_RequestCodeExtraIndex(drop);
    }
    if (place < 0 || PyUnstable_Code_GetExtra((PyObject *)code, place, &kept) < 0) {
        kept = NULL;
    }
    else if (kept == NULL && make) {
        kept = make_twin(code);
    }
    PyErr_Clear();
    return kept;
}

static void
set_code(Frame *frame, PyObject *twin)
{
#if PY_VERSION_HEX >= 0x030E0000
    _PyStackRef old = frame->f_executable;

    frame->f_executable = PyStackRef_FromPyObjectNew(twin);
    frame->instr_ptr = _PyFrame_GetBytecode(frame);
    PyStackRef_CLOSE(old);
#elif PY_VERSION_HEX >= 0x030D0000
    frame->instr_ptr = _PyCode_CODE((PyCodeObject *)twin);
    Py_SETREF(frame->f_executable, Py_NewRef(twin));
#else
    frame->prev_instr = _PyCode_CODE((PyCodeObject *)twin);
    Py_SETREF(frame->f_code, (PyCodeObject *)Py_NewRef(twin));
#endif
}

/* True if there is no other reference to the frame object and it holds no data of its own: the interpreter makes it
 * anew on demand. */
static bool
is_idle(const PyFrameObject *object)
{
#if PY_VERSION_HEX >= 0x030D0000
    if (object != NULL && object->f_extra_locals != NULL) {
        return false;
    }
#endif
    return object == NULL || (Py_REFCNT(object) == 1 && object->f_trace == NULL);
}

/* True for the helper at the start of the loop of restored frames (frame_restore.c, 3.11): it has no handlers and
 * cannot be traced, so it needs no twin. */
static bool
is_helper(const PyCodeObject *code)
{
    return code != NULL && code->_co_firsttraceable >= Py_SIZE(code) &&
           PyBytes_GET_SIZE(code->co_exceptiontable) == 0;
}

bool
plus_frames_can_leave(const struct plus_frames *frames)
{
    int count = 0;

    if (frames->uncalled || frames->between || frames->moved.moved != 0 ||
        plus_frames_nesting(frames) > 0) {
        return false;
    }
    for (Frame *frame = frames->top, *here; frame != NULL; frame = here->previous, count++) {
        here = plus_pyframe_at(frame);
        if (!plus_pyframe_is_python(here) || is_helper(plus_pyframe_code(here))) {
            continue;
        }
        if (!plus_pyframe_has_begun(here) || here->owner != FRAME_OWNED_BY_THREAD ||
            here->f_locals != NULL || !is_idle(here->frame_obj) ||
            plus_instrumentation_is_active(plus_pyframe_code(here)) ||
            twin_of(plus_pyframe_code(here), true) == NULL) {
            return false;
        }
    }
    return count > 0;
}

void
plus_frames_leave(const struct plus_frames *frames)
{
    for (Frame *frame = frames->top, *here; frame != NULL; frame = here->previous) {
        here = plus_pyframe_at(frame);
        if (plus_pyframe_is_python(here) && !is_helper(plus_pyframe_code(here))) {
            set_code(here, twin_of(plus_pyframe_code(here), false));
        }
    }
}

/* The operands live as long as the call goes on: the operand stack holds them, or up to 3.11 the loop's C variables. */
PyObject *
plus_frames_call_operands(const struct plus_frames *frames)
{
    Frame *frame = plus_pyframe_at(frames->top);
    PyCodeObject *code = plus_pyframe_code(frame);
    int offset = _PyInterpreterFrame_LASTI(frame) * (int)sizeof(_Py_CODEUNIT);
    const struct plus_call_site *site = code == NULL ? NULL : plus_stack_depth_around(code, offset);

    if (site != NULL && plus_site_asks(site)) {
        return PyTuple_New(0);
    }
    if (site == NULL || site->kind != PLUS_SITE_CALL || site->unpacked >= 0) {
        return NULL;
    }
    PyObject *all = PyTuple_New(site->depth - site->base);

    for (int i = site->base; all != NULL && i < site->depth; i++) {
        PyObject *there = plus_pyframe_variable(frame, code->co_nlocalsplus + i);
        PyTuple_SET_ITEM(all, i - site->base, Py_NewRef(there != NULL ? there : Py_None));
    }
    PyErr_Clear();
    return all;
}

/* ---- proof --------------------------------------------------------------------------------------- */

#define SOURCE                                                                                     \
    "def probe(first, look):\n"                                                                    \
    "    try:\n"                                                                                   \
    "        return [first, look()]\n"                                                             \
    "    except BaseException:\n"                                                                  \
    "        return look\n"                                                                        \
    "    finally:\n"                                                                               \
    "        first.append(look)\n"

static PyObject *
raise_here(PyObject *exception, PyObject *ignored)
{
    Frame *top = plus_pyframe_top(PyThreadState_Get());
    struct plus_frames frames = {.top = top};
    Frame *below = plus_pyframe_at(top)->previous;

    /* Cut the chain behind the probe's frame. */
    plus_pyframe_at(top)->previous = NULL;
    bool can = plus_frames_can_leave(&frames);
    if (can) {
        plus_frames_leave(&frames);
    }
    plus_pyframe_at(top)->previous = below;
    if (!can) {
        Py_RETURN_NONE;
    }
    PyErr_Restore(Py_NewRef((PyObject *)Py_TYPE(exception)), Py_NewRef(exception), NULL);
    return NULL;
}

static PyMethodDef raise_method = {"look", raise_here, METH_NOARGS, NULL};

static const char *
try_out(void)
{
    bool fits = false;
    PyObject *exception = PyObject_CallNoArgs(PyExc_BaseException), *first = PyList_New(0);
    PyObject *function = plus_probe_function(SOURCE), *result = NULL;
    PyObject *call = exception == NULL ? NULL : PyCFunction_New(&raise_method, exception);

    if (call != NULL && first != NULL && function != NULL) {
        result = PyObject_CallFunctionObjArgs(function, first, call, NULL);

        PyObject *raised = result != NULL ? NULL : plus_compat_take_exception();
        PyObject *traceback = raised == NULL ? NULL : PyException_GetTraceback(raised);
        /* True if no line of the probe ran, and no reference was kept. */
        fits = raised != NULL && raised == exception && PyList_GET_SIZE(first) == 0 &&
               Py_REFCNT(first) == 1 && Py_REFCNT(call) == 1 && traceback == NULL;
        Py_XDECREF(traceback);
        if (raised != NULL && raised != exception) {
            plus_raise_again(raised);
        }
        else {
            Py_XDECREF(raised);
        }
    }
    Py_XDECREF(result);
    Py_XDECREF(call);
    Py_XDECREF(function);
    Py_XDECREF(first);
    Py_XDECREF(exception);
    return fits ? NULL : "frames cannot be left as expected";
}

bool
plus_frames_are_left(void)
{
    static bool is_known, can;

    if (!is_known) {
        can = plus_fact_prove(try_out, &is_known) == NULL;
    }
    return can;
}
