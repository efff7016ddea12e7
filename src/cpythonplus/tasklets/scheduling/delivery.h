/* An event for tasklets that wait for the end of a call in another thread. */
#ifndef PLUS_TASKLETS_DELIVERY_H
#define PLUS_TASKLETS_DELIVERY_H

#include "../../_base/compat.h"

extern PyTypeObject plus_delivery_type;

#endif
