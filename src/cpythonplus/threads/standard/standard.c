/* How a standard class and its native type stay together; standard.h explains the purpose.
 *
 * An entry is empty, or *introduced* (`type` is set): the two know each other; then it is *active* or not.
 *
 * Introducing, in this order: the class gets a __new__ of ours (3.13 and later); the contents that its module has
 * given it are noted (`originals`); the native type gets the functions that only the class has (complete); its present
 * contents are noted (`own`); earlier changes of the class are applied (heed_all); from here on changes are watched.
 * standard_py.c then makes the methods bind like functions (method.c), also in `own`.  If a module is loaded again, it
 * has another class: the native type gets its `own` contents back, and is introduced again.
 *
 * A call of the class (make_plain) makes a native object if its entry and those of its bases are active and none of
 * their classes was changed; otherwise a standard one.  Arguments that the native type refuses are passed to the class.
 *
 * `changed` has the names whose values are not the module's.  A name that gets its original value back leaves the set.
 * From 3.12 on a watcher of the class's dict calls heed() before each change, which makes the same change in the native
 * type, so that native objects have it by the ordinary look-up.  Classes of a subinterpreter have no watcher: their
 * changes are found when an object is made (look).  Before 3.12 there are no watchers either, and the native type is
 * left as it is, as nothing would tell when to undo a change: there the methods of native objects ask
 * plus_standard_replaced().
 *
 * `entries` is the process's list of all entries, guarded by the GIL.  An entry lives in its module's state; code that
 * clears the state calls plus_standard_forget().
 */
#include "standard.h"

#include "../../_base/raise.h"

/* All entries of the process; a subinterpreter has its own classes.  They are few, so a list is enough. */
static struct plus_standard *entries;

static struct plus_standard *
entry_of_class(const PyTypeObject *type)
{
    struct plus_standard *entry = entries;

    while (entry != NULL && entry->type != type) {
        entry = entry->next;
    }
    return entry;
}

struct plus_standard *
plus_standard_of(PyObject *op)
{
    struct plus_standard *entry = entries;

    while (entry != NULL && entry->native != Py_TYPE(op)) {
        entry = entry->next;
    }
    return entry;
}

/* ------------------------------------------------------------------------------------------------
 * Changes of the class by other code
 */

/* False for names that the interpreter and the standard library keep in a class's dict for themselves, and for those
 * that only affect how objects are made. */
static bool
is_mirrored(PyObject *name)
{
    static const char *const others[] = {
        "__new__",       "__init__",          "__annotations__", "__annotations_cache__",
        "__annotate__",  "__annotate_func__", "__doc__",         "__abstractmethods__",
        "__slotnames__", "__class__",         "__dict__",        "__conditional_annotations__",
    };

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (PyUnicode_CompareWithASCIIString(name, others[i]) == 0) {
            return false;
        }
    }
    return true;
}

static bool
decides_how_made(PyObject *name)
{
    return PyUnicode_CompareWithASCIIString(name, "__init__") == 0 ||
           PyUnicode_CompareWithASCIIString(name, "__new__") == 0;
}

/* Whether any class of the process was changed. */
static _Atomic bool ever_changed;

/* Sets `value` (NULL: nothing) by this name in the native type.  Does nothing before 3.12: without a watcher it would
 * not be known when to undo the change. */
static int
set_in_native(struct plus_standard *entry, PyObject *name, PyObject *value)
{
#if PY_VERSION_HEX < 0x030C0000
    return 0;
#endif
    int there = PyDict_Contains(entry->native->tp_dict, name);

    if (there < 0 || (value == NULL && there == 0)) {
        return there < 0 ? -1 : 0;
    }
    return PyObject_SetAttr((PyObject *)entry->native, name, value); /* NULL deletes */
}

/* Notes that the class has, or is about to have, `value` (NULL: nothing) by this name. */
static int
heed(struct plus_standard *entry, PyObject *name, PyObject *value)
{
    if (!PyUnicode_Check(name) || (!is_mirrored(name) && !decides_how_made(name))) {
        return 0;
    }
    if (value == PyDict_GetItemWithError(entry->originals, name)) {
        int rc = PySet_Discard(entry->changed, name);

        if (rc <= 0 || !is_mirrored(name)) {
            return rc < 0 ? -1 : 0;
        }
        return set_in_native(entry, name, PyDict_GetItemWithError(entry->own, name));
    }
    if (PySet_Add(entry->changed, name) < 0) {
        return -1;
    }
    ever_changed = true;
    return is_mirrored(name) ? set_in_native(entry, name, value) : 0;
}

static int
heed_all(struct plus_standard *entry)
{
    PyObject *now = entry->type->tp_dict;
    PyObject *name, *value, *names = PyDict_Copy(entry->originals);
    Py_ssize_t position = 0;
    int rc = names != NULL ? PyDict_Update(names, now) : -1;

    PySet_Clear(entry->changed); /* a name that was added and removed again is in neither dict */
    while (rc == 0 && PyDict_Next(names, &position, &name, &value)) {
        rc = heed(entry, name, PyDict_GetItemWithError(now, name));
    }
    Py_XDECREF(names);
    return rc;
}

#if PY_VERSION_HEX >= 0x030C0000

/* One watcher for the process, of its first interpreter here; -1: none yet. */
static int watcher_id = -1;
static PyInterpreterState *watcher_home;

static int
watch(PyDict_WatchEvent event, PyObject *dict, PyObject *name, PyObject *value)
{
    if (event != PyDict_EVENT_ADDED && event != PyDict_EVENT_MODIFIED &&
        event != PyDict_EVENT_DELETED) {
        return 0;
    }
    struct plus_raised raised = plus_raised_take();
    for (struct plus_standard *entry = entries; entry != NULL; entry = entry->next) {
        if (entry->type->tp_dict == dict && heed(entry, name, value) < 0) {
            PyErr_WriteUnraisable((PyObject *)entry->type);
        }
    }
    plus_raised_put(raised);
    return 0;
}

static int
begin_watching(struct plus_standard *entry)
{
    if (watcher_id < 0) {
        watcher_id = PyDict_AddWatcher(watch);
        if (watcher_id < 0) {
            return -1;
        }
        watcher_home = PyInterpreterState_Get();
    }
    /* A subinterpreter has no watcher: look() finds changes of its classes when an object is made. */
    return watcher_home == PyInterpreterState_Get() ? PyDict_Watch(watcher_id, entry->type->tp_dict)
                                                    : 0;
}

static int
look(struct plus_standard *entry)
{
    return watcher_home == PyInterpreterState_Get() ? 0 : heed_all(entry);
}

#else

static int
begin_watching(struct plus_standard *entry)
{
    return 0;
}

static int
look(struct plus_standard *entry)
{
    if (plus_fact_refusal(PLUS_FACT_DICT_VERSION) != NULL) {
        return heed_all(entry);
    }
    uint64_t version = plus_dict_version(entry->type->tp_dict);

    if (entry->followed && version == entry->version) {
        return 0;
    }
    entry->version = version;
    entry->followed = true;
    return heed_all(entry);
}

#endif

PyObject *
plus_standard_replaced(PyObject *op, PyObject *name)
{
    struct plus_standard *entry = plus_standard_of(op);
    PyObject *value = NULL;

    for (; entry != NULL && value == NULL; entry = entry->base) {
        int changed = look(entry) == 0 ? PySet_Contains(entry->changed, name) : -1;

        if (changed < 0) {
            return NULL;
        }
        value = changed ? PyDict_GetItemWithError(entry->type->tp_dict, name) : NULL;
        if (value == NULL && PyDict_Contains(entry->originals, name)) {
            return NULL;
        }
    }
    if (value == NULL) {
        return NULL;
    }
    descrgetfunc bind = Py_TYPE(value)->tp_descr_get;
    return bind != NULL ? bind(value, op, (PyObject *)Py_TYPE(op)) : Py_NewRef(value);
}

/* ------------------------------------------------------------------------------------------------
 * Making objects
 */

/* Returns 1 if a plain object may be a native one, 0 if not; -1 with an exception. */
static int
stands(struct plus_standard *entry)
{
    for (; entry != NULL; entry = entry->base) {
        if (!entry->active) {
            return 0;
        }
        if (look(entry) < 0) {
            return -1;
        }
        if (PySet_GET_SIZE(entry->changed) > 0) {
            return 0;
        }
    }
    return 1;
}

static bool
is_about_arguments(void)
{
    return PyErr_ExceptionMatches(PyExc_TypeError) || PyErr_ExceptionMatches(PyExc_ValueError) ||
           PyErr_ExceptionMatches(PyExc_OverflowError);
}

/* Calls the class as if it had no vectorcall. */
static PyObject *
call_class(PyObject *type, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
    Py_ssize_t keywords = kwnames != NULL ? PyTuple_GET_SIZE(kwnames) : 0;
    PyObject *positional = PyTuple_New(nargs);
    PyObject *named = keywords > 0 ? PyDict_New() : NULL;
    PyObject *made = NULL;

    if (positional == NULL || (keywords > 0 && named == NULL)) {
        goto done;
    }
    for (Py_ssize_t i = 0; i < nargs; i++) {
        PyTuple_SET_ITEM(positional, i, Py_NewRef(args[i]));
    }
    for (Py_ssize_t i = 0; i < keywords; i++) {
        if (PyDict_SetItem(named, PyTuple_GET_ITEM(kwnames, i), args[nargs + i]) < 0) {
            goto done;
        }
    }
    made = PyType_Type.tp_call(type, positional, named);
done:
    Py_XDECREF(positional);
    Py_XDECREF(named);
    return made;
}

/* The tp_vectorcall of the standard classes.  Arguments that the native type refuses are passed to the standard class,
 * which may accept them, or raises its own exception. */
static PyObject *
make_plain(PyObject *type, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    struct plus_standard *entry = entry_of_class((PyTypeObject *)type);
    int native = entry != NULL ? stands(entry) : 0;

    if (native < 0) {
        return NULL;
    }
    if (native) {
        PyObject *made = PyObject_Vectorcall((PyObject *)entry->native, args, nargsf, kwnames);
        if (made != NULL || !is_about_arguments()) {
            return made;
        }
        PyErr_Clear();
    }
    return call_class(type, args, nargsf, kwnames);
}

#if PY_VERSION_HEX >= 0x030D0000

/* Returns super().__new__ for `type` in the class at `address`, which need not exist any more. */
static PyObject *
inherited_new(PyTypeObject *type, const void *address)
{
    PyObject *class = (PyObject *)&PyBaseObject_Type, *view, *function;

    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(type->tp_mro); i++) {
        if (PyTuple_GET_ITEM(type->tp_mro, i) == address) {
            class = PyTuple_GET_ITEM(type->tp_mro, i);
        }
    }
    if (class == (PyObject *)&PyBaseObject_Type) {
        return PyObject_GetAttrString(class, "__new__");
    }
    view = PyObject_CallFunctionObjArgs((PyObject *)&PySuper_Type, class, type, NULL);
    function = view != NULL ? PyObject_GetAttrString(view, "__new__") : NULL;
    Py_XDECREF(view);
    return function;
}

/* The __new__ of the standard classes.  It calls the inherited one; if that is object's, without arguments, as for a
 * class without a __new__.  It exists because from 3.13 on the interpreter's short cut for classes without a __new__
 * would bypass tp_vectorcall.  It is not set before: inspect.signature() of 3.11, up to some release, finds no
 * signature of a class that has a __new__ in C, whatever its __init__ tells.  `address` is that of the class, as an
 * int: copyreg would take a class that is its __new__'s __self__ for one with a state in C. */
static PyObject *
make_bare(PyObject *address, PyObject *args, PyObject *kwargs)
{
    PyObject *type = PyTuple_GET_SIZE(args) > 0 ? PyTuple_GET_ITEM(args, 0) : NULL;
    PyObject *function, *of_object, *made = NULL;

    if (type == NULL || !PyType_Check(type)) {
        return PyErr_Format(PyExc_TypeError, "__new__() needs a class as its first argument");
    }
    function = inherited_new((PyTypeObject *)type, PyLong_AsVoidPtr(address));
    of_object = PyObject_GetAttrString((PyObject *)&PyBaseObject_Type, "__new__");
    if (function != NULL && of_object != NULL) {
        made = function == of_object ? PyObject_CallOneArg(function, type)
                                     : PyObject_Call(function, args, kwargs);
    }
    Py_XDECREF(function);
    Py_XDECREF(of_object);
    return made;
}

static PyMethodDef bare_new = {"__new__", (PyCFunction)(void (*)(void))make_bare,
                               METH_VARARGS | METH_KEYWORDS,
                               PyDoc_STR("__new__($type, *args, **kwargs)\n--\n\n"
                                         "Make an instance without calling __init__().")};

static int
set_new(PyTypeObject *type)
{
    PyObject *address = PyLong_FromVoidPtr(type);
    PyObject *function = address != NULL ? PyCFunction_New(&bare_new, address) : NULL;
    int rc = function != NULL ? PyObject_SetAttrString((PyObject *)type, "__new__", function) : -1;

    Py_XDECREF(address);
    Py_XDECREF(function);
    return rc;
}

#else

static int
set_new(PyTypeObject *type)
{
    (void)type;
    return 0;
}

#endif

/* ------------------------------------------------------------------------------------------------
 * Introducing
 */

/* Whether a value of the class's dict was put there by its module.  Only names that the native type has too matter. */
static bool
is_original(PyObject *value, PyObject *home)
{
    if (PyFunction_Check(value)) {
        return PyFunction_GET_GLOBALS(value) == home;
    }
    return !PyCallable_Check(value) || Py_IS_TYPE(value, &PyClassMethod_Type);
}

static PyObject *
originals_of(PyTypeObject *type, PyObject *home)
{
    PyObject *originals = PyDict_New();
    PyObject *name, *value;
    Py_ssize_t position = 0;

    while (originals != NULL && PyDict_Next(type->tp_dict, &position, &name, &value)) {
        if ((is_original(value, home) || !is_mirrored(name)) &&
            PyDict_SetItem(originals, name, value) < 0) {
            Py_CLEAR(originals);
        }
    }
    return originals;
}

/* Whether the native type lacks this name of the class, or only inherits it from a native type that got it from its own
 * class, like LifoQueue._put(). */
static bool
lacks(PyTypeObject *native, PyObject *name)
{
    PyObject *found = PyObject_GetAttr((PyObject *)native, name);
    bool lacking = found == NULL || PyFunction_Check(found);

    PyErr_Clear();
    Py_XDECREF(found);
    return lacking;
}

/* Copies into the native type the functions that only the class has: private ones, and any that a newer version has
 * added. They work on the attributes that both have. */
static int
complete(PyTypeObject *native, PyObject *originals)
{
    PyObject *name, *value;
    Py_ssize_t position = 0;
    int rc = 0;

    while (rc == 0 && PyDict_Next(originals, &position, &name, &value)) {
        if (is_mirrored(name) && lacks(native, name)) {
            rc = PyObject_SetAttr((PyObject *)native, name, value);
        }
    }
    return rc;
}

/* Undoes the changes of the native type that followed changes of the class. */
static int
take_back(struct plus_standard *entry)
{
    PyObject *name, *names = PySequence_List(entry->changed);
    int rc = names != NULL ? 0 : -1;

    for (Py_ssize_t i = 0; rc == 0 && i < PyList_GET_SIZE(names); i++) {
        name = PyList_GET_ITEM(names, i);
        if (is_mirrored(name)) {
            rc = set_in_native(entry, name, PyDict_GetItemWithError(entry->own, name));
        }
    }
    Py_XDECREF(names);
    return rc;
}

int
plus_standard_introduce(struct plus_standard *entry, PyTypeObject *native, PyTypeObject *type,
                        PyObject *home)
{
    if (entry->type != NULL) { /* its module was loaded again */
        if (take_back(entry) < 0) {
            return -1;
        }
        plus_standard_forget(entry);
    }
    if (set_new(type) < 0) {
        return -1;
    }
    entry->type = (PyTypeObject *)Py_NewRef(type);
    entry->native = (PyTypeObject *)Py_NewRef(native);
    entry->originals = originals_of(type, home);
    if (entry->originals != NULL && complete(native, entry->originals) == 0) {
        entry->own = PyDict_Copy(native->tp_dict);
    }
    entry->changed = PySet_New(NULL);
    if (entry->own == NULL || entry->originals == NULL || entry->changed == NULL ||
        heed_all(entry) < 0) {
        plus_standard_forget(entry);
        return -1;
    }
    for (Py_ssize_t i = 1; i < PyTuple_GET_SIZE(type->tp_mro) && entry->base == NULL; i++) {
        entry->base = entry_of_class((PyTypeObject *)PyTuple_GET_ITEM(type->tp_mro, i));
    }
    entry->next = entries;
    entries = entry;
    return begin_watching(entry);
}

void
plus_standard_activate(struct plus_standard *entry, bool active)
{
    entry->active = active;
    entry->type->tp_vectorcall = active ? make_plain : NULL;
    PyType_Modified(entry->type); /* specialised call sites are re-specialised */
}

int
plus_standard_traverse(struct plus_standard *entry, visitproc visit, void *arg)
{
    Py_VISIT(entry->type);
    Py_VISIT(entry->native);
    Py_VISIT(entry->originals);
    Py_VISIT(entry->own);
    Py_VISIT(entry->changed);
    return 0;
}

void
plus_standard_forget(struct plus_standard *entry)
{
    struct plus_standard **link = &entries;

    while (*link != NULL && *link != entry) {
        link = &(*link)->next;
    }
    if (*link != NULL) {
        *link = entry->next;
        entry->type->tp_vectorcall = NULL;
    }
    entry->base = entry->next = NULL;
    entry->active = false;
    Py_CLEAR(entry->originals);
    Py_CLEAR(entry->own);
    Py_CLEAR(entry->changed);
    Py_CLEAR(entry->native);
    Py_CLEAR(entry->type);
}

/* ------------------------------------------------------------------------------------------------
 * Answers of a native object as the standard one
 */

/* Returns a borrowed function; NULL, without an exception, if there is none. */
static PyObject *
find_function(PyObject *op, const char *name)
{
    PyObject *function = NULL;

    for (struct plus_standard *entry = plus_standard_of(op); entry != NULL && function == NULL;
         entry = entry->base) {
        function = PyDict_GetItemString(entry->originals, name);
    }
    return function != NULL && PyFunction_Check(function) ? function : NULL;
}

PyObject *
plus_standard_if_touched(PyObject *op, PyObject *dict, const char *name)
{
    bool touched = dict != NULL;

    if (!touched && !ever_changed) {
        return NULL;
    }
    for (struct plus_standard *entry = plus_standard_of(op); entry != NULL; entry = entry->base) {
        touched = touched || PySet_GET_SIZE(entry->changed) > 0;
    }
    return touched ? find_function(op, name) : NULL;
}

PyObject *
plus_standard_call(PyObject *function, PyObject *op, PyObject *const *args, Py_ssize_t nargs,
                   PyObject *kwnames)
{
    Py_ssize_t all = nargs + (kwnames != NULL ? PyTuple_GET_SIZE(kwnames) : 0);
    PyObject **with_self = PyMem_New(PyObject *, (size_t)all + 1);
    if (with_self == NULL) {
        return PyErr_NoMemory();
    }
    with_self[0] = op;
    if (all > 0) { /* with none, `args` may be NULL */
        memcpy(with_self + 1, args, (size_t)all * sizeof(*args));
    }
    PyObject *result = PyObject_Vectorcall(function, with_self, (size_t)nargs + 1, kwnames);
    PyMem_Free(with_self);
    return result;
}

PyObject *
plus_standard_answer(PyObject *op, const char *name, PyObject *const *args, Py_ssize_t nargs,
                     PyObject *kwnames)
{
    PyObject *function;

    if (!is_about_arguments()) {
        return NULL;
    }
    struct plus_raised raised = plus_raised_take();
    function = find_function(op, name);
    plus_raised_put(raised);
    if (function == NULL) {
        return NULL;
    }
    PyErr_Clear();
    return plus_standard_call(function, op, args, nargs, kwnames);
}

PyObject *
plus_standard_get_class(PyObject *op, void *closure)
{
    struct plus_standard *entry = plus_standard_of(op);

    return Py_NewRef(entry != NULL ? (PyObject *)entry->type : (PyObject *)Py_TYPE(op));
}

/* Returns the object's own dict, with the values that a standard object has in its dict. */
PyObject *
plus_standard_get_dict(PyObject *op, void *closure)
{
    PyObject *dict = PyObject_GenericGetDict(op, NULL);
    PyObject *done = dict != NULL
                         ? plus_call_from("cpythonplus.threads._insides", "fill", "(OO)", op, dict)
                         : NULL;

    if (done == NULL) {
        Py_CLEAR(dict);
    }
    Py_XDECREF(done);
    return dict;
}

PyObject *
plus_standard_list_names(PyObject *op, PyObject *ignored)
{
    return plus_call_from("cpythonplus.threads._insides", "list_names", "(O)", op);
}

PyObject *
plus_standard_reduce(PyObject *op, PyObject *protocol)
{
    return plus_call_from("cpythonplus.threads._insides", "reduce", "(OO)", op, protocol);
}

PyGetSetDef plus_standard_getset[] = {
    PLUS_STANDARD_GETSET,
    {NULL, NULL, NULL, NULL, NULL},
};
