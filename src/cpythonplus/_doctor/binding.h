/* The method tables of this folder. */
#pragma once

#include "../_base/compat.h"

extern PyMethodDef plus_agent_methods[];       /* agent_py.c */
extern PyMethodDef plus_gil_profile_methods[]; /* gil_profile_py.c */
extern PyMethodDef plus_profilers_methods[];   /* profilers_py.c */
