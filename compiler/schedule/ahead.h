#ifndef KILN_COMPILER_SCHEDULE_AHEAD_H_
#define KILN_COMPILER_SCHEDULE_AHEAD_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace kiln::schedule {

// "ahead AXIS": what is staged at this serial axis by the threads of a block is staged one step
// before it is used, into one of two places in turn, so that memory works while the step before is
// computed. (Known as double buffering.)
struct Ahead {
  static constexpr std::string_view kName = "ahead";
  int axis = 0;

  std::string Print() const;
  static absl::StatusOr<Ahead> Parse(absl::Span<const std::string_view> words);
  bool operator==(const Ahead&) const = default;
};

}  // namespace kiln::schedule

#endif  // KILN_COMPILER_SCHEDULE_AHEAD_H_
