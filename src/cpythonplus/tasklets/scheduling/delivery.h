/* A call in another thread whose end a tasklet waits for. */
#ifndef PLUS_TASKLETS_DELIVERY_H
#define PLUS_TASKLETS_DELIVERY_H

#include "../../_base/compat.h"

extern PyTypeObject plus_delivery_type;

#endif
