#ifndef KILN_COMPILER_SCHEDULE_DIRECTIVES_STREAM_H_
#define KILN_COMPILER_SCHEDULE_DIRECTIVES_STREAM_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace kiln::schedule {

// "stream STAGE": whole-vector stores of this stage are non-temporal: they bypass the caches, which
// saves reading each line before it is overwritten. Pays off if the outputs are much larger than
// the caches.
struct Stream {
  static constexpr std::string_view kName = "stream";
  int stage = 0;

  std::string Print() const;
  static absl::StatusOr<Stream> Parse(absl::Span<const std::string_view> words);
  bool operator==(const Stream&) const = default;
};

}  // namespace kiln::schedule

#endif  // KILN_COMPILER_SCHEDULE_DIRECTIVES_STREAM_H_
