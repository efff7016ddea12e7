/* An event for tasklets that wait for the end of a call in another thread. */
#pragma once

#include "../../_base/compat.h"

extern PyTypeObject plus_delivery_type;
