/* Quantiles of the histogram against those of the sorted values. */
#include "../gil/check.h"

#include "_base/histogram.h"

#include <stddef.h>

#define VALUES 5000

static struct plus_histogram histogram;
static uint64_t values[VALUES];

static int
ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* The nearest-rank quantile is never under the true one and at most 1/16 over it. */
static void
check_quantile(size_t count, double fraction)
{
    double position = fraction * (double)count;
    size_t rank = (size_t)position;

    rank += (double)rank < position; /* rounded up, without the library of mathematics */
    uint64_t exact = values[rank > 0 ? rank - 1 : 0];
    uint64_t read = plus_histogram_quantile_ns(&histogram, fraction);

    CHECK(read >= exact);
    CHECK(read - exact <= exact / PLUS_HISTOGRAM_SUB);
}

static void
test_against_sorted_values(uint64_t seed, size_t count, unsigned bits)
{
    static const double fractions[] = {0.01, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1.0};
    uint64_t random = seed, total = 0;

    histogram = (struct plus_histogram){0};
    for (size_t i = 0; i < count; i++) {
        /* Spread over the powers of two, as durations are. */
        values[i] = next_random(&random) >> (64u - 1u - next_random(&random) % bits);
        total += values[i];
        plus_histogram_add(&histogram, values[i]);
    }
    qsort(values, count, sizeof(values[0]), ascending);
    CHECK(histogram.count == count);
    CHECK(histogram.total_ns == total);
    CHECK(histogram.max_ns == values[count - 1]);
    for (size_t i = 0; i < sizeof(fractions) / sizeof(fractions[0]); i++) {
        check_quantile(count, fractions[i]);
    }
    CHECK(plus_histogram_quantile_ns(&histogram, 1.0) == histogram.max_ns);
}

static void
test_empty(void)
{
    histogram = (struct plus_histogram){0};
    CHECK(plus_histogram_quantile_ns(&histogram, 0.5) == 0);
    CHECK(histogram.max_ns == 0 && histogram.count == 0 && histogram.total_ns == 0);
}

/* Each value alone: every bucket's edges, up to the greatest number. */
static void
test_single_values(void)
{
    for (unsigned bit = 0; bit < 64; bit++) {
        for (int delta = -1; delta <= 1; delta++) {
            uint64_t value = (UINT64_C(1) << bit) + (uint64_t)(int64_t)delta;

            histogram = (struct plus_histogram){0};
            plus_histogram_add(&histogram, value);
            CHECK(plus_histogram_quantile_ns(&histogram, 0.5) == value);
            CHECK(plus_histogram_quantile_ns(&histogram, 1.0) == value);
            plus_histogram_add(&histogram, UINT64_MAX);
            uint64_t half = plus_histogram_quantile_ns(&histogram, 0.5);
            CHECK(half >= value && half - value <= value / PLUS_HISTOGRAM_SUB);
        }
    }
}

int
main(void)
{
    test_empty();
    test_single_values();
    for (uint64_t seed = 1; seed <= 20; seed++) {
        test_against_sorted_values(seed, VALUES, 40);
        test_against_sorted_values(seed, 1 + (size_t)seed, 62);
        test_against_sorted_values(seed, VALUES, 5);
    }
    return 0;
}
