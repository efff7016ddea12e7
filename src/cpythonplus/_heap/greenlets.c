/* A service of gevent or eventlet does its work in greenlets, of which one runs.  tp_traverse of the others leaves their
 * variables and operands out, so without this their objects would seem to be held by C code.  gr_frame is C code of
 * greenlet's that returns a field. */
#include "greenlets.h"

#include "../_interp/frames/live_frames.h"
#include "../_interp/objects/gc_objects.h"
#include "../_interp/objects/layouts.h"

struct noting {
    PyTypeObject *type;
    PyObject *frame; /* the descriptor of gr_frame */
};

static int
note_frames(PyObject *op, bool frozen, void *arg)
{
    const struct noting *it = arg;
    int status = 0;

    (void)frozen;
    if (!PyType_IsSubtype(Py_TYPE(op), it->type)) {
        return 0;
    }
    PyObject *frame = Py_TYPE(it->frame)->tp_descr_get(it->frame, op, (PyObject *)Py_TYPE(op));

    if (frame == NULL) {
        PyErr_Clear();
    }
    else if (PyFrame_Check(frame)) { /* None: it runs, has ended, or has not begun */
        status = plus_live_frames_note((PyFrameObject *)frame);
    }
    Py_XDECREF(frame);
    return status;
}

int
plus_greenlets_note(void)
{
    PyObject *modules = PyImport_GetModuleDict();
    PyObject *module = PyDict_CheckExact(modules) ? plus_dict_item(modules, "greenlet") : NULL;
    PyObject *type = module != NULL && PyModule_Check(module)
                         ? plus_dict_item(PyModule_GetDict(module), "greenlet")
                         : NULL;

    if (type == NULL || !PyType_Check(type)) {
        return 0;
    }
    PyObject *names = plus_class_dict((PyTypeObject *)type);
    struct noting it = {(PyTypeObject *)type,
                        names == NULL ? NULL : plus_dict_item(names, "gr_frame")};

    return it.frame != NULL && Py_IS_TYPE(it.frame, &PyGetSetDescr_Type)
               ? plus_gc_objects_visit(note_frames, &it)
               : 0;
}
