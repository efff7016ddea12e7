/* The binding; see unseen.h.  A C function that keeps Python objects has a tuple of them as its `self`. */
#include "unseen.h"
#include "methods.h"

static PyObject *
call_unseen(PyObject *function, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    PyThreadState *thread = PyThreadState_Get();

    PyThreadState_EnterTracing(thread);
    PyObject *result = PyObject_Vectorcall(function, args, (size_t)nargs, kwnames);
    PyThreadState_LeaveTracing(thread);
    return result;
}

static PyObject *
find_spec(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    int known = nargs > 0 ? PySet_Contains(PyTuple_GET_ITEM(self, 0), args[0]) : 1;

    if (known <= 0) {
        return known < 0 ? NULL : Py_NewRef(Py_None);
    }
    return call_unseen(PyTuple_GET_ITEM(self, 1), args, nargs, kwnames);
}

static PyObject *
exec_module(PyObject *self, PyObject *module)
{
    PyObject *before = PyTuple_GET_ITEM(self, 0), *load = PyTuple_GET_ITEM(self, 1),
             *after = PyTuple_GET_ITEM(self, 2), *done;

    if ((done = call_unseen(before, &module, 1, NULL)) == NULL) {
        return NULL;
    }
    Py_DECREF(done);
    if ((done = PyObject_CallOneArg(load, module)) == NULL) {
        return NULL;
    }
    Py_DECREF(done);
    return call_unseen(after, &module, 1, NULL);
}

static PyMethodDef finder = {"find_spec", (PyCFunction)(void (*)(void))find_spec,
                             METH_FASTCALL | METH_KEYWORDS, NULL};
static PyMethodDef loader = {"exec_module", exec_module, METH_O, NULL};

static PyObject *
keeping(PyMethodDef *definition, PyObject *objects)
{
    PyObject *function = objects != NULL ? PyCFunction_New(definition, objects) : NULL;

    Py_XDECREF(objects);
    return function;
}

static PyObject *
unseen_finder(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *names, *function;

    if (!PyArg_ParseTuple(args, "O!O:unseen_finder", &PySet_Type, &names, &function)) {
        return NULL;
    }
    return keeping(&finder, PyTuple_Pack(2, names, function));
}

static PyObject *
unseen_loader(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *before, *load, *after;

    if (!PyArg_ParseTuple(args, "OOO:unseen_loader", &before, &load, &after)) {
        return NULL;
    }
    return keeping(&loader, PyTuple_Pack(3, before, load, after));
}

PyMethodDef plus_unseen_methods[] = {
    PLUS_METHOD("unseen_finder", unseen_finder, METH_VARARGS, "$module, names, function, /",
                "Return a finder's find_spec: that function for the names of a set, else None."),
    PLUS_METHOD("unseen_loader", unseen_loader, METH_VARARGS, "$module, before, load, after, /",
                "Return a loader's exec_module, which calls the three with the module."),
    {NULL, NULL, 0, NULL},
};
