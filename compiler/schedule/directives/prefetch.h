#ifndef KILN_COMPILER_SCHEDULE_DIRECTIVES_PREFETCH_H_
#define KILN_COMPILER_SCHEDULE_DIRECTIVES_PREFETCH_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace kiln::schedule {

// "prefetch STAGE BUFFER AXIS STEPS": each time the stage reads a line of the buffer, fetches into
// the cache the line that it will read when the kernel's axis is STEPS further, so that memory and
// computation overlap. Pays off for short rows: the hardware's prefetchers stop at the end of a
// page. Fetching past the buffer's end is harmless.
struct Prefetch {
  static constexpr std::string_view kName = "prefetch";
  int stage = 0;
  int buffer = 0;
  int axis = 0;  // a range of the kernel
  int64_t steps = 1;

  std::string Print() const;
  static absl::StatusOr<Prefetch> Parse(absl::Span<const std::string_view> words);
  bool operator==(const Prefetch&) const = default;
};

}  // namespace kiln::schedule

#endif  // KILN_COMPILER_SCHEDULE_DIRECTIVES_PREFETCH_H_
