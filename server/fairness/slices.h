// Cuts a program into slices of consecutive commands of about equal time. A kernel that takes
// longer is split first, between the points of its grid.
#ifndef KILN_SERVER_FAIRNESS_SLICES_H_
#define KILN_SERVER_FAIRNESS_SLICES_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace kiln::fairness {

struct CommandCost {
  double seconds = 0;
  int64_t points = 1;  // grid points of a kernel that can be split; else 1
};

// Points [begin, end) of a command, or all of it.
struct CommandPart {
  int command = 0;
  int64_t begin = 0;
  int64_t end = 1;
  double seconds = 0;
};

// Splits commands that take longer than `seconds_max` seconds into parts with equal numbers of
// points, each of at most about `seconds_max` seconds or of one point; at most kSlicesMax parts of
// all commands plus one for each command. In order.
std::vector<CommandPart> Split(absl::Span<const CommandCost> commands, double seconds_max);

// The seconds of each part, for Cut and CutTogether.
std::vector<double> SecondsOf(absl::Span<const CommandPart> parts);

// Joins neighbouring parts of the same command.
std::vector<CommandPart> Join(absl::Span<const CommandPart> parts);

struct Slice {
  int begin = 0;  // the first command
  int end = 0;    // after the last
  double seconds = 0;
};

inline constexpr int kSlicesMax = 4096;

// Cuts commands with these predicted seconds. A slice takes at most `seconds_max` seconds, or is a
// single command. If that needs more than kSlicesMax, slices are made longer. Every command is in
// exactly one slice, in order; without commands there is no slice.
std::vector<Slice> Cut(absl::Span<const double> command_seconds, double seconds_max);

// A slice of several programs that run concurrently and meet at barriers. All have the same number
// of stretches; the first stretch ends at the first barrier.
struct JointSlice {
  int stretch = 0;        // in which it ends, for all of them
  std::vector<int> ends;  // by program: its number of commands before the end
  double seconds = 0;     // of the slowest program
};

// `seconds[program][stretch]` has the predicted time of each command. Slices end where Cut ends
// them, and at barriers. A slice that ends with a stretch ends before the barrier, which belongs to
// the next slice; the last slice has all that is left.
std::vector<JointSlice> CutTogether(absl::Span<const std::vector<std::vector<double>>> seconds,
                                    double seconds_max);

}  // namespace kiln::fairness

#endif  // KILN_SERVER_FAIRNESS_SLICES_H_
