/* An extension of test_other_patch.py: facts as they are proven by what was compiled with another patch release. */
#include "_interp/facts/facts.h"
#include "_interp/frames/pystate.h"
#include "_interp/objects/referents.h"

/* Why there is no tasklet, or how far above the low end of its C stack the two limits are. */
static PyObject *
thread_state(PyObject *module, PyObject *ignored)
{
    static char memory[1 << 16];
    struct plus_bounds bounds = {memory, memory + sizeof memory / 2, memory + sizeof memory};
    struct plus_pystate state = {0};
    const char *refusal = plus_fact_refusal(PLUS_FACT_THREAD_STATE);

    (void)module, (void)ignored;
    if (refusal != NULL) {
        return PyUnicode_FromString(refusal);
    }
    plus_pystate_fresh(&state, PyThreadState_Get(), &bounds);
#if PY_VERSION_HEX >= 0x030E0000
    return Py_BuildValue("(nn)", (Py_ssize_t)(state.c_stack_soft_limit - (uintptr_t)memory),
                         (Py_ssize_t)(state.c_stack_hard_limit - (uintptr_t)memory));
#else
    Py_RETURN_NONE;
#endif
}

static PyObject *
leads_to(PyObject *module, PyObject *args)
{
    unsigned long long word;
    PyObject *op;

    (void)module;
    return PyArg_ParseTuple(args, "KO", &word, &op)
               ? PyBool_FromLong(plus_gc_leads_to((uintptr_t)word, op))
               : NULL;
}

static PyMethodDef methods[] = {
    {"thread_state", thread_state, METH_NOARGS, NULL},
    {"leads_to", leads_to, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "other_patch_probe",
                                    .m_size = -1, .m_methods = methods};

PyMODINIT_FUNC
PyInit_other_patch_probe(void)
{
    plus_facts_register(plus_fact_table);
    return PyModule_Create(&module);
}
