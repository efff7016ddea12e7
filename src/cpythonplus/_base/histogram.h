/* A histogram of durations with a bounded relative error, of constant size.
 *
 * Log-linear buckets in the manner of HdrHistogram (Gil Tene): each power of two is cut into
 * PLUS_HISTOGRAM_SUB equal parts, so a quantile read from it is at most 1/16 (6 %) too high.  Holds
 * 1 ns to 2^63 ns.  Not thread-safe: the owner's lock guards it.  Plain memory: fork copies it.
 */
#pragma once

#include <stdint.h>

#define PLUS_HISTOGRAM_SUB_BITS 4
#define PLUS_HISTOGRAM_SUB (1u << PLUS_HISTOGRAM_SUB_BITS)
#define PLUS_HISTOGRAM_BUCKETS ((64u - PLUS_HISTOGRAM_SUB_BITS + 1u) * PLUS_HISTOGRAM_SUB)

struct plus_histogram {
    uint64_t count;
    uint64_t total_ns;
    uint64_t max_ns;
    uint64_t buckets[PLUS_HISTOGRAM_BUCKETS];
};

void
plus_histogram_add(struct plus_histogram *h, uint64_t ns);

/* The smallest duration that at least `fraction` (0 < fraction <= 1) of the entries do not exceed,
 * rounded up to its bucket's upper end but never above max_ns (nearest rank); 0 when empty. */
uint64_t
plus_histogram_quantile_ns(const struct plus_histogram *h, double fraction);

/* The same with 4 parts for each power of two, from 1 us to 34 s, for one of many threads: a quantile is at most 1/4 too
 * high.  The first bucket has all shorter entries, the last one all longer ones. */
#define PLUS_BRIEF_BUCKETS 101u

struct plus_brief_histogram {
    uint32_t buckets[PLUS_BRIEF_BUCKETS];
};

void
plus_brief_histogram_add(struct plus_brief_histogram *h, uint64_t ns);

/* The longest duration of a bucket. */
uint64_t
plus_brief_histogram_upper_ns(unsigned bucket);
