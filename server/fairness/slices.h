// Where a program is cut: slices of consecutive commands that take about equally long at most.
#ifndef KILN_SERVER_FAIRNESS_SLICES_H_
#define KILN_SERVER_FAIRNESS_SLICES_H_

#include <vector>

#include "absl/types/span.h"

namespace kiln::fairness {

struct Slice {
  int begin = 0;  // the first command
  int end = 0;    // behind the last
  double seconds = 0;
};

inline constexpr int kMostSlices = 4096;

// Cuts commands that are predicted to take so many seconds each. A slice takes at most `most`
// seconds, or is a single command; of more than kMostSlices that would be needed, slices are made
// longer. Every command is in one slice, in order; no command, no slice.
std::vector<Slice> Cut(absl::Span<const double> command_seconds, double most);

}  // namespace kiln::fairness

#endif  // KILN_SERVER_FAIRNESS_SLICES_H_
