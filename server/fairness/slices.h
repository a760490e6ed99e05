// Where a program is cut: slices of consecutive commands that take about equally long at most. A
// kernel that takes longer is split first, between the points of its grid.
#ifndef KILN_SERVER_FAIRNESS_SLICES_H_
#define KILN_SERVER_FAIRNESS_SLICES_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace kiln::fairness {

struct CommandCost {
  double seconds = 0;
  int64_t points = 1;  // of the grid of a kernel that can be split; else 1
};

// Points [begin, end) of a command, or all of it.
struct CommandPart {
  int command = 0;
  int64_t begin = 0;
  int64_t end = 1;
  double seconds = 0;
};

// Splits commands that take longer than `most` seconds into parts of equally many points that take
// about as long as that at most, or have one point; of all commands no more than kMostSlices parts
// and one for each command. In order.
std::vector<CommandPart> Split(absl::Span<const CommandCost> commands, double most);

// The seconds of each, for Cut and CutTogether.
std::vector<double> SecondsOf(absl::Span<const CommandPart> parts);

// As one where neighbours are of the same command.
std::vector<CommandPart> Join(absl::Span<const CommandPart> parts);

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

// A slice of several programs that run beside one another and meet again and again: all have the
// same number of stretches, of which the first ends where they first meet.
struct JointSlice {
  int stretch = 0;        // in which it ends, for all of them
  std::vector<int> ends;  // by program: how many of its commands lie before its end
  double seconds = 0;     // of the program that takes longest
};

// `seconds[program][stretch]` has what each command is predicted to take. Slices end as Cut ends
// them, and at meetings. A slice that ends with a stretch lies before the meeting, which is the
// next one's; the last has all that is left.
std::vector<JointSlice> CutTogether(absl::Span<const std::vector<std::vector<double>>> seconds,
                                    double most);

}  // namespace kiln::fairness

#endif  // KILN_SERVER_FAIRNESS_SLICES_H_
