/* Tables of methods. */
#ifndef PLUS_TASKLETS_METHODS_H
#define PLUS_TASKLETS_METHODS_H

#include "../_base/compat.h"

#include <string.h>

/* An entry of a table of methods, whose text begins as inspect.signature() reads it; KW: with whatever flags. */
#define PLUS_METHOD(name, function, flags, parameters, text)                                       \
    {name, function, flags, PyDoc_STR(name "(" parameters ")\n--\n\n" text)}
#define PLUS_METHOD_KW(name, function, ...)                                                        \
    PLUS_METHOD(name, (PyCFunction)(void (*)(void))(function), __VA_ARGS__)

/* In a table that ends with an entry without a name (or is NULL): the method of that name and with those flags, or NULL. */
static inline PyMethodDef *
plus_find_method(PyMethodDef *method, const char *name, int flags)
{
    while (method != NULL && method->ml_name != NULL && strcmp(method->ml_name, name) != 0) {
        method++;
    }
    return method != NULL && method->ml_name != NULL && method->ml_flags == flags ? method : NULL;
}

#endif
