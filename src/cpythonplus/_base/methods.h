/* Helpers for method tables. */
#pragma once

#include "compat.h"

/* An entry of a method table, whose text begins with a signature for inspect.signature(); KW: with any flags. */
#define PLUS_METHOD(name, function, flags, parameters, text)                                       \
    {name, function, flags, PyDoc_STR(name "(" parameters ")\n--\n\n" text)}
#define PLUS_METHOD_KW(name, function, ...)                                                        \
    PLUS_METHOD(name, (PyCFunction)(void (*)(void))(function), __VA_ARGS__)

/* A method, or a getter, that is one expression of `self`, an object or module, and `arg`; and a method that is one
 * statement and returns None. */
#define PLUS_RETURNS(name, expression)                                                             \
    static PyObject *name(PyObject *self, PyObject *arg)                                           \
    {                                                                                              \
        return expression;                                                                         \
    }
#define PLUS_GETS(name, expression)                                                                \
    static PyObject *name(PyObject *self, void *closure)                                           \
    {                                                                                              \
        return expression;                                                                         \
    }
#define PLUS_DOES(name, statement)                                                                 \
    static PyObject *name(PyObject *self, PyObject *arg)                                           \
    {                                                                                              \
        statement;                                                                                 \
        Py_RETURN_NONE;                                                                            \
    }

/* Returns the method with that name and flags from a table (or NULL) that ends with a nameless entry; NULL: not
 * found. */
static inline PyMethodDef *
plus_find_method(PyMethodDef *method, const char *name, int flags)
{
    while (method != NULL && method->ml_name != NULL && strcmp(method->ml_name, name) != 0) {
        method++;
    }
    return method != NULL && method->ml_name != NULL && method->ml_flags == flags ? method : NULL;
}
