#include "server/metrics/buckets.h"

namespace kiln::metrics {

prometheus::Histogram::BucketBoundaries Buckets(double from, double to) {
  prometheus::Histogram::BucketBoundaries bounds;
  // Repeated multiplication of 1e-6 by ten misses 10 by a rounding error, hence the tolerance.
  for (double decade = from; decade < to * 1.001; decade *= 10) {
    for (const double step : {1.0, 2.5, 5.0}) {
      if (decade * step < to * 1.001) bounds.push_back(decade * step);
    }
  }
  return bounds;
}

}  // namespace kiln::metrics
