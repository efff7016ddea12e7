/* The table of what the helpers use; their Python modules give it its public form. */
#include "helpers.h"

PyMethodDef plus_memory_helpers_methods[] = {
    {"memory_bare_frame", plus_memory_bare_frame, METH_VARARGS,
     PyDoc_STR("memory_bare_frame($module, code, names, /)\n--\n\n"
               "Return a frame of `code` that never runs: no variables, no caller.\n\n"
               "names: the dict of its globals.")},
    {"memory_frame_generator", plus_memory_frame_generator, METH_O,
     PyDoc_STR("memory_frame_generator($module, frame, /)\n--\n\n"
               "Return the generator or coroutine that goes on with the frame, or None.")},
    {"reraise", plus_memory_reraise, METH_O,
     PyDoc_STR(
         "reraise($module, raised, /)\n--\n\n"
         "Raise an exception, or that of an Outcome, without leaving a cycle behind.\n\n"
         "raised: the exception, or what `catch` returned; an Outcome without one does nothing.\n"
         "\n"
         "The variables of the calling function that are the exception, those of enclosing\n"
         "functions included, become None; an Outcome forgets it.  An attribute or a list that\n"
         "holds the exception goes on doing so: take it out (`reraise(errors.pop())`).  The\n"
         "traceback that it has is kept.  Raises TypeError for anything else.")},
    {"memory_close_cells", plus_memory_close_cells, METH_VARARGS,
     PyDoc_STR("memory_close_cells($module, closure, count, frames, /)\n--\n\n"
               "Empty those of a closure's first `count` cells that only cycles keep.\n\n"
               "frames: finished ones, whose references do not count.  Returns how many.")},
    {"memory_clear_weakrefs", plus_memory_clear_weakrefs, METH_VARARGS,
     PyDoc_STR("memory_clear_weakrefs($module, op, call_callbacks, /)\n--\n\n"
               "Clear all weak references to `op`; returns how many there were.")},
    {NULL, NULL, 0, NULL},
};
