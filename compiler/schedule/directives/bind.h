#ifndef KILN_COMPILER_SCHEDULE_DIRECTIVES_BIND_H_
#define KILN_COMPILER_SCHEDULE_DIRECTIVES_BIND_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace kiln::schedule {

enum class Binding : uint8_t {
  kSerial,  // a loop
  kTask,    // independent tasks, for threads; before all loops in the order, never a reduction
  kUnroll,  // the body is repeated, with constants for the axis
  kVector,  // lanes of one vector; the extent is a power of two (split the axis first); at most one
            // in a nest
  kThread,  // threads of the block that runs a task; for a reduction, the extent is a power of two
  kMatrix,  // one instruction of a matrix unit: the axes of rows, columns and terms, the innermost
            // three of the order (matrix/plan.h)
};

// "bind AXIS serial|task|unroll|vector|thread|matrix". The default is serial.
struct Bind {
  static constexpr std::string_view kName = "bind";
  int axis = 0;
  Binding binding = Binding::kSerial;

  std::string Print() const;
  static absl::StatusOr<Bind> Parse(absl::Span<const std::string_view> words);
  bool operator==(const Bind&) const = default;
};

}  // namespace kiln::schedule

#endif  // KILN_COMPILER_SCHEDULE_DIRECTIVES_BIND_H_
