/* The classes of `threading` and `queue` that are written in Python, and the native types that stand for
 * them.
 *
 *     threading.Event        the standard class: its identity, its subclasses, its functions stay
 *       tp_vectorcall ---->  threading.Event() makes a native object
 *       __new__       ---->  makes a bare standard one: for subclasses, copy, pickle (object's, before 3.13)
 *
 *     native Event           __class__ is the standard class, so isinstance() holds
 *
 * So a *plain* object is native, and an instance of a *subclass* runs the standard library's own code over
 * native locks and conditions: a subclass may reach for every part that the standard class has.
 *
 * Rejected: subclasses of the native types (each way in which a subclass can change the inside has to be
 * foreseen in C); native types derived from the standard classes (their instances' dict and their
 * deallocation are private to the interpreter, and differ by version); replacing the names only (class
 * attributes, default arguments and earlier subclasses keep the old class).
 *
 * A class that somebody changes (mock.patch, a tracing agent) is heeded: from then on plain objects are
 * standard ones, and native ones that exist get what was put there.  From CPython 3.12 on a watcher of the
 * class's dict tells at once; before, whoever makes an object or calls a method compares the dict's version.
 *
 * Everything with the GIL held.  fork: nothing to do.
 */
#ifndef PLUS_THREADS_STANDARD_H
#define PLUS_THREADS_STANDARD_H

#include "../../_base/compat.h"
#include "../../_interp/objects/dict_version.h"

#include <stdbool.h>
#include <stdint.h>

/* One class and its native type; lives in the state of the module. */
struct plus_standard {
    PyTypeObject *type; /* the standard class; NULL: not introduced yet */
    PyTypeObject *native;
    PyObject *originals; /* a copy of the class's dict, without what somebody had changed before */
    PyObject *own;       /* a copy of the native type's dict */
    PyObject *changed;   /* set of the names that somebody has changed in the class */
    uint64_t version;    /* of the class's dict when it was looked at last; before 3.12 */
    bool
        followed; /* PLUS_FACT_DICT_VERSION holds, and `version` was read; else each look is a whole one */
    bool active;                /* plain objects are native */
    struct plus_standard *base; /* the one that the class derives from */
    struct plus_standard *next; /* in the process's list */
};

/* Introduces a native type and its standard class, whose module has the globals `home`; in the place of
 * another class, if *entry has one.  0, or -1 with an exception. */
int
plus_standard_introduce(struct plus_standard *entry, PyTypeObject *native, PyTypeObject *type,
                        PyObject *home);

/* Has calls of the class make native objects, or no longer. */
void
plus_standard_activate(struct plus_standard *entry, bool active);

/* The entry of a native object; NULL: its type was not introduced. */
struct plus_standard *
plus_standard_of(PyObject *op);

/* Before 3.12, where nobody tells: what somebody has put by this name into the class of a native object,
 * bound to it as the class would.  New; NULL, without an exception, if nobody has. */
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

/* For a method that calls another one on itself: the standard one, in the place of ours, if somebody may
 * have put his own on the object (whose dict is `dict`; NULL: none was ever asked for) or on its class.
 * Borrowed; NULL, without an exception, if nobody has. */
PyObject *
plus_standard_if_touched(PyObject *op, PyObject *dict, const char *name);

/* Calls such a method. */
PyObject *
plus_standard_call(PyObject *function, PyObject *op, PyObject *const *args, Py_ssize_t nargs,
                   PyObject *kwnames);

/* What the standard class's own method says to these arguments, where ours has raised an exception for
 * them: the same error in the running version's words, or a result.  Ours stays where there is no standard
 * class, and for exceptions that are not about arguments. */
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

/* The members that make place for weak references and a dict. */
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

/* The module's state goes. */
int
plus_standard_traverse(struct plus_standard *entry, visitproc visit, void *arg);
void
plus_standard_forget(struct plus_standard *entry);

#endif
