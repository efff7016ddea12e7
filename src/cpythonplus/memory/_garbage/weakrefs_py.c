/* Clears weak references to an object that is reused instead of destroyed. */
#include "../../_base/raise.h"
#include "../binding.h"

/* All references are found and cleared before the first callback is called, as when an object dies: a callback must
 * see no weak reference to the object that is still alive.  PyObject_ClearWeakRefs() would do this, but only for an
 * object without references. */
struct clearing {
    PyObject *op;          /* borrowed */
    bool call;             /* else finalizers are detached */
    PyObject *getweakrefs; /* weakref.getweakrefs: it knows where each type has its list */
    PyObject *finalize;    /* weakref.finalize */
    PyObject *references;  /* lists of all found references */
    PyObject *callbacks;   /* None for a reference without one */
};

static int
clearing_init(struct clearing *this, PyObject *op, bool call)
{
    *this = (struct clearing){.op = op, .call = call};
    this->getweakrefs = plus_import_from("weakref", "getweakrefs");
    this->finalize = this->getweakrefs ? plus_import_from("weakref", "finalize") : NULL;
    this->references = PyList_New(0);
    this->callbacks = PyList_New(0);
    if (this->finalize && !PyType_Check(this->finalize)) { /* the program has replaced it */
        PyErr_SetString(PyExc_TypeError, "weakref.finalize is no class");
        return -1;
    }
    return this->finalize && this->references && this->callbacks ? 0 : -1;
}

/* Detaches a weakref.finalize that is not called now; otherwise it would be called at exit. */
static int
detach(struct clearing *this, PyObject *callback)
{
    if (this->call || !PyObject_TypeCheck(callback, (PyTypeObject *)this->finalize)) {
        return 0;
    }
    PyObject *detached = PyObject_CallMethod(callback, "detach", NULL);
    Py_XDECREF(detached);
    return detached == NULL ? -1 : 0;
}

/* The program may have replaced getweakrefs(). */
static bool
are_references(PyObject *found)
{
    bool are = PyList_CheckExact(found);

    for (Py_ssize_t i = 0; are && i < PyList_GET_SIZE(found); i++) {
        are = PyWeakref_Check(PyList_GET_ITEM(found, i));
    }
    if (!are) {
        PyErr_SetString(PyExc_TypeError, "weakref.getweakrefs() must return weak references");
    }
    return are;
}

/* Keeps the references in `found` and their callbacks. */
static int
remember(struct clearing *this, PyObject *found)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(found); i++) {
        PyObject *reference = PyList_GET_ITEM(found, i);
        PyObject *callback = ((PyWeakReference *)reference)->wr_callback;

        callback = Py_NewRef(callback == NULL ? Py_None : callback);
        int failed = PyList_Append(this->references, reference) < 0 ||
                     PyList_Append(this->callbacks, callback) < 0 || detach(this, callback) < 0;
        Py_DECREF(callback);
        if (failed) {
            return -1;
        }
    }
    return 0;
}

/* Clears the references, and runs no code: references and callbacks are held.  The base class's function works for all
 * of them, proxies too; a subclass's would clear more. */
static void
clear(PyObject *found)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(found); i++) {
        _PyWeakref_RefType.tp_clear(PyList_GET_ITEM(found, i));
    }
}

/* Repeats until there is none: a collection in between may run code that makes new ones. */
static int
clear_all(struct clearing *this)
{
    for (;;) {
        PyObject *found = PyObject_CallOneArg(this->getweakrefs, this->op);

        if (found == NULL || !are_references(found)) {
            Py_XDECREF(found);
            return -1;
        }
        Py_ssize_t count = PyList_GET_SIZE(found);
        int failed = count > 0 ? remember(this, found) : 0;
        if (!failed) {
            clear(found);
        }
        Py_DECREF(found);
        if (failed || count == 0) {
            return failed;
        }
    }
}

/* Calls the callbacks as the interpreter does: an exception is reported, and the others still run. */
static void
call_callbacks(struct clearing *this)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(this->callbacks); i++) {
        PyObject *callback = PyList_GET_ITEM(this->callbacks, i);

        if (callback == Py_None) {
            continue;
        }
        PyObject *result = PyObject_CallOneArg(callback, PyList_GET_ITEM(this->references, i));
        if (result == NULL) {
            PyErr_WriteUnraisable(callback);
        }
        Py_XDECREF(result);
    }
}

PyObject *
plus_memory_clear_weakrefs(PyObject *module, PyObject *args)
{
    struct clearing this;
    PyObject *op, *result = NULL;
    int call;

    if (!PyArg_ParseTuple(args, "Op:memory_clear_weakrefs", &op, &call)) {
        return NULL;
    }
    if (PyType_Check(op)) {
        /* After a later change of the class, the caches of its subclasses would not be reset. */
        PyErr_SetString(PyExc_TypeError,
                        "clear_weakrefs() does not accept a class: the interpreter itself "
                        "finds subclasses by weak references");
        return NULL;
    }
    if (clearing_init(&this, op, call) == 0 && clear_all(&this) == 0) {
        if (call) {
            call_callbacks(&this);
        }
        result = PyLong_FromSsize_t(PyList_GET_SIZE(this.references));
    }
    Py_XDECREF(this.getweakrefs);
    Py_XDECREF(this.finalize);
    Py_XDECREF(this.references);
    Py_XDECREF(this.callbacks);
    return result;
}
