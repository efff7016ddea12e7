/* The probes of facts_table.c, each beside the readers that it is for: NULL, or why these must not be called. */
#ifndef PLUS_INTERP_PROBES_H
#define PLUS_INTERP_PROBES_H

const char *
plus_probe_gc_header(void);
const char *
plus_probe_gc_rings(void);
const char *
plus_probe_frames(void);
const char *
plus_probe_operands(void);
const char *
plus_probe_thread_state(void);
const char *
plus_probe_instrumentation(void);
const char *
plus_probe_frame_tracing(void);
const char *
plus_probe_dict_keys(void);
const char *
plus_probe_inline_values(void);
const char *
plus_probe_object_sizes(void);
const char *
plus_probe_dict_version(void);
const char *
plus_probe_pools(void);
const char *
plus_probe_arenas(void);
const char *
plus_probe_immortal(void);

#endif
