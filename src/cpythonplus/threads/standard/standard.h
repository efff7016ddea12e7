/* The classes of `threading` and `queue` that are written in Python, and the native types that stand for them.
 *
 *     threading.Event      the standard class: its identity, its subclasses and its functions stay
 *       tp_vectorcall ---->  threading.Event() makes a native object
 *       __new__       ---->  makes a bare standard one: for subclasses, copy, pickle (object's, before 3.13)
 *
 *     native Event         __class__ is the standard class, so isinstance() is true
 *
 * So a *plain* object is native, and an instance of a *subclass* runs the standard library's own code over native locks
 * and conditions: a subclass may use every part that the standard class has.
 *
 * Rejected: subclasses of the native types (C code would have to foresee each way in which a subclass can change the
 * inside); native types derived from the standard classes (their instances' dict and their deallocation are private to
 * the interpreter, and differ by version); replacing the names only (class attributes, default arguments and earlier
 * subclasses keep the old class).
 *
 * If other code changes a class (mock.patch, a tracing agent), plain objects are standard ones from then on, and
 * existing native ones get the change.  From CPython 3.12 on a watcher of the class's dict reports it at once; before,
 * code that makes an object or calls a method compares the dict's version.
 *
 * Called with the GIL held.  fork: nothing to do.
 */
#pragma once

#include "../../_base/compat.h"
#include "../../_interp/objects/dict_version.h"

#include <stdatomic.h>

/* One class and its native type; lives in the state of the module. */
struct plus_standard {
    PyTypeObject *type; /* the standard class; NULL: not introduced yet */
    PyTypeObject *native;
    PyObject *originals; /* a copy of the class's dict, without earlier changes by other code */
    PyObject *own;       /* a copy of the native type's dict */
    PyObject *changed;   /* set of the names that other code has changed in the class */
    uint64_t version;    /* of the class's dict at the last check; before 3.12 */
    /* PLUS_FACT_DICT_VERSION holds and `version` was read; if not, checks are full */
    bool followed;
    _Atomic bool active;        /* plain objects are native */
    struct plus_standard *base; /* the entry of the class's base, or NULL */
    struct plus_standard *next; /* in the process's list */
};

/* Introduces a native type and its standard class, whose module has the globals `home`; if *entry has another class,
 * this one replaces it.  Returns 0, or -1 with an exception. */
int
plus_standard_introduce(struct plus_standard *entry, PyTypeObject *native, PyTypeObject *type,
                        PyObject *home);

/* Makes calls of the class make native objects, or no longer. */
void
plus_standard_activate(struct plus_standard *entry, bool active);

/* Returns the entry of a native object; NULL: its type was not introduced. */
struct plus_standard *
plus_standard_of(PyObject *op);

/* Used before 3.12, which has no watchers.  Returns what other code has put by this name into the class of a native
 * object, bound to the object as the class would: a new reference; NULL, without an exception, if there is no
 * change. */
PyObject *
plus_standard_replaced(PyObject *op, PyObject *name);

static inline bool
plus_standard_is_untouched(const struct plus_standard *entry, PyObject *op)
{
#if PY_VERSION_HEX < 0x030C0000
    return Py_TYPE(op) == entry->native && entry->type != NULL && entry->followed &&
           entry->version == plus_dict_version(entry->type->tp_dict) &&
           PySet_GET_SIZE(entry->changed) == 0;
#else
    (void)entry, (void)op;
    return true;
#endif
}

/* For a method that calls another one on itself.  Returns the standard method to call instead of ours, if other code
 * may have set its own methods on the object (whose dict is `dict`; NULL: never asked for) or on its class.  Borrowed;
 * NULL, without an exception, if not. */
PyObject *
plus_standard_if_touched(PyObject *op, PyObject *dict, const char *name);

/* Calls a method that plus_standard_if_touched() has returned. */
PyObject *
plus_standard_call(PyObject *function, PyObject *op, PyObject *const *args, Py_ssize_t nargs,
                   PyObject *kwnames);

/* Called after our method has raised an exception for its arguments: calls the standard class's own method instead, for
 * the same error in the running version's words, or for a result.  Our exception stays if there is no standard class,
 * or if it is not about arguments. */
PyObject *
plus_standard_answer(PyObject *op, const char *name, PyObject *const *args, Py_ssize_t nargs,
                     PyObject *kwnames);

/* Entries for __class__ and __dict__, and for __dir__ and __reduce_ex__, of the native types. */
PyObject *
plus_standard_get_class(PyObject *op, void *closure);
PyObject *
plus_standard_get_dict(PyObject *op, void *closure);
PyObject *
plus_standard_list_names(PyObject *op, PyObject *ignored);
PyObject *
plus_standard_reduce(PyObject *op, PyObject *protocol);

/* The members that declare a native type's weak references and dict. */
#define PLUS_STANDARD_MEMBERS(type)                                                                \
    {"__weaklistoffset__", Py_T_PYSSIZET, offsetof(type, weakrefs), Py_READONLY, NULL},            \
        {"__dictoffset__", Py_T_PYSSIZET, offsetof(type, dict), Py_READONLY, NULL},                \
    {                                                                                              \
        "__weakref__", _Py_T_OBJECT, offsetof(type, weakrefs), Py_READONLY, NULL                   \
    }

/* The entries for __class__ and __dict__ of a type that stands for a standard class. */
#define PLUS_STANDARD_GETSET                                                                       \
    {"__class__", plus_standard_get_class, NULL, NULL, NULL},                                      \
    {                                                                                              \
        "__dict__", plus_standard_get_dict, PyObject_GenericSetDict, NULL, NULL                    \
    }
extern PyGetSetDef plus_standard_getset[];
#define PLUS_STANDARD_METHODS                                                                      \
    {"__dir__", plus_standard_list_names, METH_NOARGS,                                             \
     PyDoc_STR("__dir__($self, /)\n--\n\nReturn the names of its attributes.")},                   \
    {                                                                                              \
        "__reduce_ex__", plus_standard_reduce, METH_O,                                             \
            PyDoc_STR("__reduce_ex__($self, protocol, /)\n--\n\nReturn what pickle asks for.")     \
    }

/* Called when the module's state is traversed and cleared. */
int
plus_standard_traverse(struct plus_standard *entry, visitproc visit, void *arg);
void
plus_standard_forget(struct plus_standard *entry);

/* Makes those methods of the native type that are Python functions in the standard class bind like functions.  Returns
 * 0, or -1 with an exception. */
int
plus_bind_as_functions(struct plus_standard *entry);
