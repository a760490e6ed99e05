// Statistics of two things that were timed in turns.
#ifndef KILN_SERVER_TUNER_TURNS_H_
#define KILN_SERVER_TUNER_TURNS_H_

#include <vector>

#include "absl/types/span.h"

namespace kiln::tuner {

// The median of an odd number of values, or the mean of the middle two. Requires: there are some.
double Median(std::vector<double> values);

struct Ratio {
  double value = 1;
  double noise = 0;  // as a share of `value`
};

// Returns how much longer the candidate takes than the incumbent. Their i-th times are of turns
// that followed one another, so that what slows the machine down for a while slows both. The median
// of the ratios does not see single disturbed turns, and the ratio of the minima does not see a
// disturbance of less than all turns; the larger one is returned, so that a candidate must be
// faster by both. The noise is twice the standard error of the median, estimated from the median
// absolute deviation, and at least half the difference of the two ratios. Requires: as many times
// of each, at least one, all positive.
Ratio CompareTurns(absl::Span<const double> incumbent, absl::Span<const double> candidate);

}  // namespace kiln::tuner

#endif  // KILN_SERVER_TUNER_TURNS_H_
