#ifndef KILN_COMPILER_SCHEDULE_DIRECTIVES_PARTIAL_H_
#define KILN_COMPILER_SCHEDULE_DIRECTIVES_PARTIAL_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace kiln::schedule {

// "partial AXIS": splits the reduction. Each point of this unrolled reduce axis has its own
// accumulator, and these are combined at the end, so that additions do not wait for the latency of
// the previous one. Reduce axes bound to lanes are always partial. (Halide's rfactor.)
struct Partial {
  static constexpr std::string_view kName = "partial";
  int axis = 0;

  std::string Print() const;
  static absl::StatusOr<Partial> Parse(absl::Span<const std::string_view> words);
  bool operator==(const Partial&) const = default;
};

}  // namespace kiln::schedule

#endif  // KILN_COMPILER_SCHEDULE_DIRECTIVES_PARTIAL_H_
