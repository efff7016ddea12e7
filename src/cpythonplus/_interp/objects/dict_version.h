/* A number that changes with a dict, up to 3.11: later versions have watchers of dicts instead. */
#pragma once

#include "../facts/facts.h"

#if PY_VERSION_HEX < 0x030C0000
static inline uint64_t
plus_dict_version(PyObject *dict)
{
    return PLUS_AT(PLUS_FACT_DICT_VERSION, (PyDictObject *)dict)->ma_version_tag;
}
#endif
