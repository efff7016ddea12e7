/* 3.12 keeps the number in the private half of the interpreter's state. */
#define Py_BUILD_CORE 1
#include "instrumentation.h"

#if PLUS_INSTRUMENTED && PY_VERSION_HEX < 0x030D0000
#include "internal/pycore_interp.h"

uint64_t
plus_instrumentation_version(PyThreadState *tstate)
{
    return tstate->interp->monitoring_version;
}
#endif
