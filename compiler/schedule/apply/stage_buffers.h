// The buffers that a stage's loops need in addition to the kernel's own.
#ifndef KILN_COMPILER_SCHEDULE_APPLY_STAGE_BUFFERS_H_
#define KILN_COMPILER_SCHEDULE_APPLY_STAGE_BUFFERS_H_

#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "compiler/schedule/loop_program.h"

namespace kiln::schedule {

class StageBuffers {
 public:
  // `program` gets the buffers. It must outlive this object.
  explicit StageBuffers(LoopProgram* program) : program_(*program) {}

  // Returns the space of values that are not in registers: memory of the task's thread, or of its
  // block.
  Space memory() const { return program_.threads > 1 ? Space::kShared : Space::kScratch; }

  // Returns the buffer's number. Requires: one dtype for each name. Parallel copies of a nest
  // (peeled ends) use the same buffers, which `purpose` and `which` name.
  int Get(const std::string& purpose, int which, ir::DType dtype, int64_t elements, Space space,
          int lanes);

 private:
  LoopProgram& program_;
  std::map<std::tuple<std::string, int, int64_t, Space, int>, int> numbers_;
};

}  // namespace kiln::schedule

#endif  // KILN_COMPILER_SCHEDULE_APPLY_STAGE_BUFFERS_H_
