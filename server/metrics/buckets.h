// The buckets of all histograms.
#ifndef KILN_SERVER_METRICS_BUCKETS_H_
#define KILN_SERVER_METRICS_BUCKETS_H_

#include <prometheus/histogram.h>

namespace kiln::metrics {

// Seconds, both ends included: 1, 2.5, 5 per decade. `from` is a power of ten.
prometheus::Histogram::BucketBoundaries Buckets(double from, double to);

}  // namespace kiln::metrics

#endif  // KILN_SERVER_METRICS_BUCKETS_H_
