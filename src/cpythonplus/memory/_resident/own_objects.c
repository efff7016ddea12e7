/* Follows all references from the namespaces of the given modules, up to objects of other modules.
 *
 *     first   the namespaces of the given modules are found; those of all other modules are `others`
 *     then    each reference is followed, except to other modules, their functions, their classes, built-in classes
 *             and frames; all else is found, and followed once
 *
 * A function belongs to another module if its globals do, unless its __module__ is one of the given ones: a
 * decorator's inner function belongs to the module that uses the decorator.  A class belongs to the __module__ in its
 * namespace.
 *
 * Strings are interned and shared, so a string that other objects refer to is not counted.  While the heap is walked
 * for another purpose, each reference to a string from an object that was not found puts the string into `shared`.
 * Objects of other classes are not checked like this: it would cost more than the walk. */
#include "own_objects.h"

#include "../../_base/memory/object_stack.h"
#include "../../_interp/objects/layouts.h"
#include "../../_interp/objects/referents.h"

struct search {
    struct plus_own_objects *own;
    PyObject *modules;
    struct plus_granules others; /* namespaces of other modules */
    struct plus_object_stack stack;
};

static bool
is_name_of_one(const struct search *search, PyObject *name)
{
    return name != NULL && PyUnicode_CheckExact(name) &&
           PyDict_Contains(search->modules, name) == 1;
}

static bool
is_of_another(struct search *search, PyObject *op)
{
    if (PyFrame_Check(op)) {
        return true;
    }
    if (PyModule_Check(op)) {
        return !plus_granules_has(&search->own->found, PyModule_GetDict(op));
    }
    if (PyFunction_Check(op)) {
        /* A decorator's function has the name of the module that uses the decorator. */
        return plus_granules_has(&search->others, PyFunction_GET_GLOBALS(op)) &&
               !is_name_of_one(search, PyFunction_GET_MODULE(op));
    }
    if (PyType_Check(op)) {
        PyObject *names = plus_class_dict((PyTypeObject *)op);
        return !PyType_HasFeature((PyTypeObject *)op, Py_TPFLAGS_HEAPTYPE) || names == NULL ||
               !is_name_of_one(search, plus_dict_item(names, "__module__"));
    }
    return PyDict_CheckExact(op) && plus_granules_has(&search->others, op);
}

static int
meet(PyObject *op, void *arg)
{
    struct search *search = arg;

    if (op == NULL || is_of_another(search, op)) {
        return 0;
    }
    int is_new = plus_granules_add(&search->own->found, op);
    if (is_new <= 0) {
        return is_new;
    }
    search->own->count++;
    return plus_referents_possible(op) ? plus_object_stack_push(&search->stack, op) : 0;
}

/* Call this first: it adds the namespaces by which own functions and dicts are recognised. */
static int
add_namespaces(struct search *search)
{
    PyObject *all = PyImport_GetModuleDict(), *name, *module;
    Py_ssize_t position = 0;
    int status = 0;

    while (status >= 0 && PyDict_Next(search->modules, &position, &name, &module)) {
        status = PyDict_CheckExact(module) ? meet(module, search) : 0;
    }
    if (status >= 0 && PyDict_CheckExact(all)) {
        status = plus_granules_add(&search->others, all);
    }
    for (position = 0;
         status >= 0 && PyDict_CheckExact(all) && PyDict_Next(all, &position, &name, &module);) {
        PyObject *names = PyModule_Check(module) ? PyModule_GetDict(module) : NULL;
        if (names != NULL && !plus_granules_has(&search->own->found, names)) {
            status = plus_granules_add(&search->others, names);
        }
    }
    return status < 0 ? status : 0;
}

int
plus_own_objects_find(struct plus_own_objects *own, PyObject *modules)
{
    struct search search = {.own = own, .modules = modules};

    int status = add_namespaces(&search);

    while (status == 0 && search.stack.depth > 0) {
        PyObject *op = search.stack.items[--search.stack.depth];
        status = plus_referents_visit(op, meet, &search);
    }
    plus_free(search.stack.items);
    plus_granules_clear(&search.others);
    return status;
}

/* A class has weak references to its subclasses; nothing else leads to these weak references, so they count with their
 * objects. */
bool
plus_own_objects_has(struct plus_own_objects *own, PyObject *op)
{
    if (PyWeakref_CheckRefExact(op)) {
        op = ((PyWeakReference *)op)->wr_object;
    }
    return own->count > 0 && plus_granules_has(&own->found, op) &&
           !plus_granules_has(&own->shared, op);
}

int
plus_own_objects_see(struct plus_own_objects *own, PyObject *from, PyObject *to)
{
    if (own->count == 0 || !PyUnicode_CheckExact(to) || !plus_granules_has(&own->found, to) ||
        plus_granules_has(&own->found, from)) {
        return 0;
    }
    return plus_granules_add(&own->shared, to) < 0 ? -ENOMEM : 0;
}

void
plus_own_objects_clear(struct plus_own_objects *own)
{
    plus_granules_clear(&own->found);
    plus_granules_clear(&own->shared);
    own->count = 0;
}
