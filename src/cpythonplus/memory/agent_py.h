/* What the agent adds to the extension. */
#ifndef PLUS_MEMORY_AGENT_PY_H
#define PLUS_MEMORY_AGENT_PY_H

#include "../_base/compat.h"

extern PyMethodDef plus_memory_agent_methods[];

#endif
