/* The functions of _interp in the extension module; facts.py wraps them for the public. */
#include "../../_base/methods.h"
#include "../../_base/rows.h"
#include "../binding.h"
#include "facts.h"

static const char *const states[] = {
    [PLUS_FACT_NOT_ASKED] = "not asked",
    [PLUS_FACT_PROVEN] = "proven",
    [PLUS_FACT_REFUSED] = "refused",
    [PLUS_FACT_ABSENT] = "absent",
};

static PyObject *
row(enum plus_fact fact)
{
    const struct plus_fact_entry *about = plus_fact_about(fact);
    const char *refusal;
    enum plus_fact_state state = plus_fact_state(fact, &refusal);

    return Py_BuildValue("(s(II)(II)sssss)", about->name, about->from >> 8, about->from & 0xff,
                         about->until >> 8, about->until & 0xff, about->what, about->proof,
                         about->features, states[state], refusal == NULL ? "" : refusal);
}

static bool
is_asked(PyObject *ask, enum plus_fact fact)
{
    for (Py_ssize_t i = 0; PyTuple_Check(ask) && i < PyTuple_GET_SIZE(ask); i++) {
        PyObject *name = PyTuple_GET_ITEM(ask, i);

        if (PyUnicode_Check(name) &&
            PyUnicode_CompareWithASCIIString(name, plus_fact_about(fact)->name) == 0) {
            return true;
        }
    }
    return ask == Py_True;
}

static PyObject *
interp_facts(PyObject *module, PyObject *ask)
{
    PyObject *rows = PyList_New(0);

    for (int fact = 0; rows != NULL && fact < PLUS_FACTS; fact++) {
        if (is_asked(ask, (enum plus_fact)fact)) {
            (void)plus_fact_refusal((enum plus_fact)fact);
        }
        plus_append_row(&rows, row((enum plus_fact)fact));
    }
    return rows;
}

#ifdef PLUS_LIES
static bool
lie(const char *name, Py_ssize_t offset_bytes)
{
    for (int fact = 0; fact < PLUS_FACTS; fact++) {
        if (strcmp(plus_fact_about((enum plus_fact)fact)->name, name) == 0) {
            plus_lies[fact] = (ptrdiff_t)offset_bytes;
            return true;
        }
    }
    return false;
}

static PyObject *
interp_lie(PyObject *module, PyObject *args)
{
    const char *name;
    Py_ssize_t offset_bytes;

    if (!PyArg_ParseTuple(args, "sn:interp_lie", &name, &offset_bytes)) {
        return NULL;
    }
    if (!lie(name, offset_bytes)) {
        return PyErr_Format(PyExc_ValueError, "there is no fact %s", name);
    }
    Py_RETURN_NONE;
}

static PyObject *
interp_pretend(PyObject *module, PyObject *args)
{
    unsigned major, minor;

    if (!PyArg_ParseTuple(args, "II:interp_pretend", &major, &minor)) {
        return NULL;
    }
    plus_pretended_version = major << 8 | minor;
    Py_RETURN_NONE;
}
#endif

static PyMethodDef methods[] = {
    PLUS_METHOD(
        "interp_facts", interp_facts, METH_O, "$module, ask, /",
        "Return (name, first version, last version, what, proof, features, state, refusal)\n"
        "of each fact.  ask: True, or a tuple of names: prove these first."),
#ifdef PLUS_LIES
    PLUS_METHOD("interp_lie", interp_lie, METH_VARARGS, "$module, name, offset_bytes, /",
                "Have the structure of a fact read so many bytes further on than it lies."),
    PLUS_METHOD("interp_pretend", interp_pretend, METH_VARARGS, "$module, major, minor, /",
                "Take the interpreter for another version where facts are asked for."),
#endif
    {NULL, NULL, 0, NULL},
};

int
plus_interp_exec(PyObject *module)
{
    plus_facts_register(plus_fact_table);
#ifdef PLUS_LIES
    if (getenv("CPYTHONPLUS_LIE") != NULL) { /* in the environment: children lie, too */
        (void)lie(getenv("CPYTHONPLUS_LIE"), 8);
    }
#endif
    return PyModule_AddFunctions(module, methods);
}
