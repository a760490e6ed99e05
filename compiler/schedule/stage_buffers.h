// The buffers that a stage's loops need besides the kernel's own.
#ifndef KILN_COMPILER_SCHEDULE_STAGE_BUFFERS_H_
#define KILN_COMPILER_SCHEDULE_STAGE_BUFFERS_H_

#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "compiler/schedule/loop_program.h"

namespace kiln::schedule {

class StageBuffers {
 public:
  // `program`, which gets the buffers, must outlive this.
  explicit StageBuffers(LoopProgram* program) : program_(*program) {}

  // Where what is no register stands: in memory of the task's thread, or of its block.
  Space memory() const { return program_.threads > 1 ? Space::kShared : Space::kScratch; }

  // The buffer's number. Copies of a nest that stand beside each other (peeled ends) use the same
  // buffers: `purpose` and `which` name them.
  int Get(const std::string& purpose, int which, ir::DType dtype, int64_t elements, Space space,
          int lanes);

 private:
  LoopProgram& program_;
  std::map<std::tuple<std::string, int, int64_t, Space, int>, int> numbers_;
};

}  // namespace kiln::schedule

#endif  // KILN_COMPILER_SCHEDULE_STAGE_BUFFERS_H_
