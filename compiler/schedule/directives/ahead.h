#ifndef KILN_COMPILER_SCHEDULE_DIRECTIVES_AHEAD_H_
#define KILN_COMPILER_SCHEDULE_DIRECTIVES_AHEAD_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace kiln::schedule {

// "ahead AXIS": double buffering. Operands that a block's threads stage at this serial axis are
// staged one step before their use, alternately into two buffers, so that memory and computation
// overlap.
struct Ahead {
  static constexpr std::string_view kName = "ahead";
  int axis = 0;

  std::string Print() const;
  static absl::StatusOr<Ahead> Parse(absl::Span<const std::string_view> words);
  bool operator==(const Ahead&) const = default;
};

}  // namespace kiln::schedule

#endif  // KILN_COMPILER_SCHEDULE_DIRECTIVES_AHEAD_H_
