#ifndef KILN_COMPILER_SCHEDULE_BIND_H_
#define KILN_COMPILER_SCHEDULE_BIND_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace kiln::schedule {

enum class Binding : uint8_t {
  kSerial,  // a loop
  kTask,    // independent tasks, for threads; before all loops in the order, never a reduction
  kUnroll,  // the body repeated, constants in the axis's place
  kVector,  // lanes of one vector; the extent is a power of two (split the axis first); one such
            // axis in a nest
  kThread,  // threads of the block that runs a task; of a reduction, a power of two
  kMatrix,  // what a matrix unit does in one instruction: a row's, a column's and a sum's axis, the
            // innermost three of the order (plan_matrix.h)
};

// "bind AXIS serial|task|unroll|vector|thread|matrix". Without it an axis is serial.
struct Bind {
  static constexpr std::string_view kName = "bind";
  int axis = 0;
  Binding binding = Binding::kSerial;

  std::string Print() const;
  static absl::StatusOr<Bind> Parse(absl::Span<const std::string_view> words);
  bool operator==(const Bind&) const = default;
};

}  // namespace kiln::schedule

#endif  // KILN_COMPILER_SCHEDULE_BIND_H_
