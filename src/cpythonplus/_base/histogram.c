#include "histogram.h"

/* Values below PLUS_HISTOGRAM_SUB have a bucket each; above, the top SUB_BITS + 1 bits choose it. */
static unsigned
bucket_of(uint64_t ns)
{
    if (ns < PLUS_HISTOGRAM_SUB) {
        return (unsigned)ns;
    }
    unsigned shift = 63u - (unsigned)__builtin_clzll(ns) - PLUS_HISTOGRAM_SUB_BITS;
    return (shift + 1u) * PLUS_HISTOGRAM_SUB + (unsigned)((ns >> shift) - PLUS_HISTOGRAM_SUB);
}

static uint64_t
bucket_upper_ns(unsigned bucket)
{
    if (bucket < PLUS_HISTOGRAM_SUB) {
        return bucket;
    }
    unsigned shift = bucket / PLUS_HISTOGRAM_SUB - 1u;
    uint64_t top = PLUS_HISTOGRAM_SUB + bucket % PLUS_HISTOGRAM_SUB;
    return (top << shift) + ((UINT64_C(1) << shift) - 1u);
}

void
plus_histogram_add(struct plus_histogram *h, uint64_t ns)
{
    h->count++;
    h->total_ns += ns;
    if (ns > h->max_ns) {
        h->max_ns = ns;
    }
    h->buckets[bucket_of(ns)]++;
}

uint64_t
plus_histogram_quantile_ns(const struct plus_histogram *h, double fraction)
{
    uint64_t seen = 0;
    double rank = fraction * (double)h->count;

    for (unsigned i = 0; i < PLUS_HISTOGRAM_BUCKETS; i++) {
        seen += h->buckets[i];
        if (seen > 0 && (double)seen >= rank) {
            uint64_t upper = bucket_upper_ns(i);
            return upper < h->max_ns ? upper : h->max_ns;
        }
    }
    return h->max_ns;
}

#define BRIEF_SHORTEST_BITS 10u /* 1,024 ns */

void
plus_brief_histogram_add(struct plus_brief_histogram *h, uint64_t ns)
{
    unsigned bucket = 0;

    if (ns >> BRIEF_SHORTEST_BITS != 0) {
        unsigned bits = 63u - (unsigned)__builtin_clzll(ns);
        bucket = 1u + (bits - BRIEF_SHORTEST_BITS) * 4u + (unsigned)(ns >> (bits - 2u) & 3u);
    }
    h->buckets[bucket < PLUS_BRIEF_BUCKETS ? bucket : PLUS_BRIEF_BUCKETS - 1u]++;
}

uint64_t
plus_brief_histogram_upper_ns(unsigned bucket)
{
    if (bucket == 0) {
        return (UINT64_C(1) << BRIEF_SHORTEST_BITS) - 1u;
    }
    unsigned bits = BRIEF_SHORTEST_BITS + (bucket - 1u) / 4u;
    return ((UINT64_C(5) + (bucket - 1u) % 4u) << (bits - 2u)) - 1u;
}
