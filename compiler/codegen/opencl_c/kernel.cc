#include "compiler/codegen/opencl_c/kernel.h"

#include <algorithm>
#include <cstdint>

#include "compiler/codegen/opencl_c/source.h"

namespace kiln::codegen {
namespace {

// Threads of a block: a few subgroups of any GPU, and many more blocks than units.
constexpr int64_t kBlockSizeMax = 64;
// The maximum private memory of a whole block: on a CPU it is on one thread's stack.
constexpr int64_t kBlockPrivateBytesMax = 256 << 10;

}  // namespace

bool IsOpenClSupported(const ir::Node* node, const drivers::Target& target) {
  return HasOpenClSource(node);
}

absl::StatusOr<Code> AssembleOpenCl(const kernel::Kernel& kernel,
                                    const schedule::LoopProgram& program,
                                    const drivers::Target& target) {
  if (absl::Status fits = CheckOpenClSupported(program); !fits.ok()) return fits;
  const int64_t private_bytes = std::max<int64_t>(OpenClPrivateBytes(program), 1);
  const int64_t block_size_max = std::min({kBlockSizeMax, int64_t{target.limits.threads_per_block},
                                           kBlockPrivateBytesMax / private_bytes});
  Code code;
  code.code = PrintSource(program, Parameters::kSlotTable);
  code.takes_slot_table = true;
  code.tasks_per_block =
      static_cast<int>(std::clamp<int64_t>(program.grid_size(), 1, block_size_max));
  return code;
}

absl::StatusOr<std::string> DisassembleOpenCl(const drivers::KernelImage& image,
                                              const drivers::Target& target) {
  return image.code;
}

}  // namespace kiln::codegen
