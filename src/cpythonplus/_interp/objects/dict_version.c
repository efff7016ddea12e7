#include "dict_version.h"

#include "../facts/probes.h"

#if PY_VERSION_HEX < 0x030C0000

const char *
plus_probe_dict_version(void)
{
    PyObject *dict = PyDict_New(), *name = PyUnicode_FromString("name");
    bool fits = dict != NULL && name != NULL;

    if (fits) {
        uint64_t empty = plus_dict_version(dict);
        fits = PyDict_SetItem(dict, name, Py_None) == 0;
        uint64_t one = plus_dict_version(dict);
        fits &= PyDict_GetItemWithError(dict, name) == Py_None && plus_dict_version(dict) == one;
        fits &= PyDict_SetItem(dict, name, Py_True) == 0;
        fits &= empty != one && plus_dict_version(dict) > one;
        fits &= PyDict_GET_SIZE(dict) == 1 && one != 1; /* it is not the entry count */
    }
    Py_XDECREF(dict);
    Py_XDECREF(name);
    return fits ? NULL : "dicts have no number that changes with them";
}

#endif
