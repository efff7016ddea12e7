/* The one extension module: tables and the order of initialisation, nothing else. */
#include "_base/compat.h"
#include "_base/stacks.h"
#include "_base/unseen.h"
#include "_compact/binding.h"
#include "_compact/state.h"
#include "_doctor/binding.h"
#include "_heap/binding.h"
#include "_interp/binding.h"
#include "gil/binding.h"
#include "memory/binding.h"
#include "prefork/binding.h"
#include "tasklets/binding.h"
#include "threads/binding.h"

static int
native_exec(PyObject *module)
{
    if (!plus_compat_is_of_this_build()) {
        PyErr_SetString(PyExc_ImportError,
                        "cpythonplus was built for " PLUS_COMPAT_BUILD
                        " of CPython, which this is not: build it with this interpreter");
        return -1;
    }
    if (PyModule_AddFunctions(module, plus_stacks_methods) < 0 ||
        PyModule_AddFunctions(module, plus_unseen_methods) < 0 || plus_interp_exec(module) < 0 ||
        PyModule_AddFunctions(module, plus_gil_methods) < 0 ||
        PyModule_AddFunctions(module, plus_stalls_methods) < 0 ||
        PyModule_AddFunctions(module, plus_memory_methods) < 0 ||
        PyModule_AddFunctions(module, plus_memory_owners_methods) < 0 ||
        PyModule_AddFunctions(module, plus_heap_walk_methods) < 0 ||
        PyModule_AddFunctions(module, plus_memory_census_methods) < 0 ||
        PyModule_AddFunctions(module, plus_memory_helpers_methods) < 0 ||
        PyModule_AddFunctions(module, plus_memory_resident_methods) < 0 ||
        PyModule_AddFunctions(module, plus_memory_caches_methods) < 0 ||
        PyModule_AddFunctions(module, plus_memory_dicts_methods) < 0 ||
        PyModule_AddFunctions(module, plus_shared_keys_methods) < 0 ||
        PyModule_AddFunctions(module, plus_memory_trim_methods) < 0 ||
        PyModule_AddFunctions(module, plus_agent_methods) < 0 ||
        PyModule_AddFunctions(module, plus_profilers_methods) < 0 ||
        PyModule_AddFunctions(module, plus_gil_profile_methods) < 0 ||
        plus_compact_exec(module) < 0 || plus_record_exec(module) < 0 ||
        PyModule_AddFunctions(module, plus_prefork_methods) < 0 || plus_atomic_init(module) < 0 ||
        plus_tasklets_exec(module) < 0) {
        return -1;
    }
    return plus_threads_exec(module);
}

static PyModuleDef_Slot native_slots[] = {
    {Py_mod_exec, native_exec},
#ifdef Py_mod_multiple_interpreters
    /* Not with GILs of their own: what the process has once (the scheduler, counts, lists) is guarded by the main one's.
     * Types and objects, and memory in which they lie, are each interpreter's own: it may have its own allocator. */
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_SUPPORTED},
#endif
#ifdef Py_mod_gil
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

/* `threads` comes first: plus_threads_state() looks for it there. */
struct native_state {
    struct plus_threads_state threads;
    struct plus_compact_state compact;
};

const size_t plus_compact_state_at = offsetof(struct native_state, compact);

static int
native_traverse(PyObject *module, visitproc visit, void *arg)
{
    int stop = plus_threads_traverse(module, visit, arg);

    return stop != 0 ? stop : plus_compact_state_traverse(module, visit, arg);
}

static int
native_clear(PyObject *module)
{
    plus_compact_state_clear(module);
    return plus_threads_clear(module);
}

static void
native_free(void *module)
{
    native_clear(module);
}

struct PyModuleDef plus_native_module = {
    PyModuleDef_HEAD_INIT,
    .m_size = sizeof(struct native_state),
    .m_traverse = native_traverse,
    .m_clear = native_clear,
    .m_free = native_free,
    .m_name = "cpythonplus._native",
    .m_doc = "The C half of cpythonplus; use the rooms\' Python modules instead.",
    .m_slots = native_slots,
};

PyMODINIT_FUNC
PyInit__native(void);

PyMODINIT_FUNC
PyInit__native(void)
{
    return PyModuleDef_Init(&plus_native_module);
}
