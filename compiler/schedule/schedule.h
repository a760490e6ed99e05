// How a kernel is computed, separate from what it computes: a short list of directives as data.
// (The separation is Halide's: Ragan-Kelley et al., PLDI 2013.) A schedule can be printed and
// parsed, is stored in the kernel cache, and fits every kernel with the same canonical text.
//
// Directives name *axes*. Axes 0, 1, … are the kernel's ranges in the order grid, then for each
// stage its ranges, its reduce ranges and its ordered ranges. Fuse and split append new axes; the
// fused or split axis no longer exists.
#ifndef KILN_COMPILER_SCHEDULE_SCHEDULE_H_
#define KILN_COMPILER_SCHEDULE_SCHEDULE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/schedule/directives/directive.h"

namespace kiln::schedule {

struct Schedule {
  std::vector<Directive> directives;
};

// Prints one directive a line, for example "split 1 64" or "bind 5 vector".
std::string Print(const Schedule& schedule);
// Returns INVALID_ARGUMENT, which names the line.
absl::StatusOr<Schedule> Parse(std::string_view text);

}  // namespace kiln::schedule

#endif  // KILN_COMPILER_SCHEDULE_SCHEDULE_H_
