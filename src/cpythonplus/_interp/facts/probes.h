/* The probes of facts_table.c, each defined beside its readers.  They return NULL, or the reason why the readers must
 * not be called. */
#pragma once

#include "../../_base/compat.h"

const char *
plus_probe_gc_header(void);
const char *
plus_probe_gc_rings(void);
const char *
plus_probe_frames(void);
const char *
plus_probe_operands(void);
const char *
plus_probe_frame_building(void);
const char *
plus_probe_itertools(void);
const char *
plus_probe_thread_state(void);
const char *
plus_probe_dict_keys(void);
const char *
plus_probe_inline_values(void);
const char *
plus_probe_object_sizes(void);
const char *
plus_probe_pools(void);
const char *
plus_probe_arenas(void);

/* NULL if the build has no such structure. */
#if PY_VERSION_HEX < 0x030C0000
const char *
plus_probe_dict_version(void);
const char *
plus_probe_frame_tracing(void);
#define plus_probe_instrumentation NULL
#else
const char *
plus_probe_instrumentation(void);
#define plus_probe_dict_version NULL
#define plus_probe_frame_tracing NULL
#endif

#if PY_VERSION_HEX >= 0x030C0000 && !defined(Py_GIL_DISABLED)
const char *
plus_probe_immortal(void);
#else
#define plus_probe_immortal NULL
#endif
