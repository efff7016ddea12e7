/* The type `local`. */
#pragma once

#include "../../_base/compat.h"

extern PyTypeObject plus_task_local_type;
