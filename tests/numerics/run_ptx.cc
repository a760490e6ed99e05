#include "tests/numerics/run_ptx.h"

#include <cstring>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/codegen/codegen.h"
#include "compiler/codegen/ptx.h"
#include "compiler/machine_codes.h"
#include "compiler/pipeline.h"
#include "tests/numerics/some_gpu.h"
#include "tests/stand_ins/cuda/ptx/interpret.h"
#include "tests/stand_ins/cuda/ptx/load.h"

namespace kiln::numerics {
namespace {

using ops::HostTensor;
namespace ptx = stand_ins::ptx;

const codegen::MachineCode& PtxCode() {
  return **compiler::FindMachineCode(codegen::kPtxArchitecture);
}

// Device memory at addresses that are not the host's, far apart.
class PtxMemory {
 public:
  ptx::Region Allocate(int64_t bytes) {
    blocks_.push_back(std::make_unique<std::vector<uint8_t>>(bytes));
    regions_.push_back({next_, static_cast<uint64_t>(bytes), blocks_.back()->data()});
    next_ += uint64_t{1} << 32;
    return regions_.back();
  }
  ptx::GlobalMemory memory() const { return ptx::GlobalMemory(regions_); }

 private:
  uint64_t next_ = uint64_t{0x70} << 40;
  std::vector<ptx::Region> regions_;
  std::vector<std::unique_ptr<std::vector<uint8_t>>> blocks_;
};

absl::Status RunImage(const drivers::KernelImage& image, absl::Span<HostTensor* const> globals) {
  PtxMemory memory;
  const auto module =
      ptx::Load(image.code, [&](int64_t bytes, int64_t) { return memory.Allocate(bytes); });
  if (!module.ok()) return module.status();
  const ptx::DecodedFunction* entry = (*module)->program.FindEntry("kernel");
  if (entry == nullptr) return absl::InternalError("the PTX has no entry \"kernel\"");
  std::vector<ptx::Region> arguments;
  std::vector<uint64_t> table;
  std::vector<uint64_t> numbers = {0};
  for (const HostTensor* global : globals) {
    const ptx::Region region = memory.Allocate(static_cast<int64_t>(global->bytes.size()));
    std::memcpy(region.host, global->bytes.data(), global->bytes.size());
    numbers.push_back(drivers::PackSlot(static_cast<int>(table.size()), 0));
    table.push_back(region.address);
    arguments.push_back(region);
  }
  const ptx::Region slots = memory.Allocate(static_cast<int64_t>(table.size() * sizeof(uint64_t)));
  std::memcpy(slots.host, table.data(), table.size() * sizeof(uint64_t));
  numbers[0] = slots.address;
  std::vector<uint8_t> parameters(numbers.size() * sizeof(uint64_t));
  std::memcpy(parameters.data(), numbers.data(), parameters.size());
  ptx::LaunchShape shape;
  shape.grid[0] = static_cast<uint32_t>(image.grid_size);
  shape.block[0] = static_cast<uint32_t>(image.block_size);
  const ptx::LaunchResult result =
      ptx::Launch((*module)->program, *entry, shape, parameters, memory.memory(), {});
  if (result.fault.kind != ptx::FaultKind::kNone)
    return absl::InternalError(absl::StrCat(result.fault.message, "\n", image.code));
  for (size_t i = 0; i < globals.size(); ++i)
    std::memcpy(globals[i]->bytes.data(), arguments[i].host, globals[i]->bytes.size());
  return absl::OkStatus();
}

}  // namespace

drivers::Target PtxTarget(const char* processor, const char* features) {
  drivers::Target target = SomeGpu();
  target.architecture = codegen::kPtxArchitecture;
  target.processor = processor;
  target.features = features;
  target.limits.threads_per_shuffle = 32;
  target.limits.bytes_per_access = 16;
  const bool ampere = absl::string_view(processor) != "sm_75";
  target.capabilities = {.fma = true,
                         .fp64 = true,
                         .fp16 = true,
                         .bf16 = ampere,
                         .matrix = ampere,
                         .async_copies = ampere};
  return target;
}

absl::StatusOr<drivers::KernelImage> CompileToPtx(const kernel::Kernel& kernel,
                                                  const schedule::Schedule& schedule,
                                                  const drivers::Target& target) {
  return codegen::CompileKernel(PtxCode(), kernel, schedule, target);
}

absl::Status RunOnPtx(const kernel::Kernel& kernel, const schedule::Schedule& schedule,
                      absl::Span<HostTensor* const> globals) {
  const auto image = CompileToPtx(kernel, schedule, PtxTarget());
  return image.ok() ? RunImage(*image, globals) : image.status();
}

absl::StatusOr<kernel::PartitionResults> RunOnPtx(const graph::Graph& graph,
                                                  absl::Span<const HostTensor> inputs) {
  const drivers::Target target = PtxTarget();
  std::vector<compiler::PassReport> reports;
  const auto state = compiler::RunPasses(graph, target, {}, {}, &reports);
  if (!state.ok()) return state.status();
  return kernel::RunPartition(
      state->partition, inputs,
      [&target](const kernel::Kernel& kernel, absl::Span<HostTensor* const> globals) {
        return RunOnPtx(kernel, PtxCode().choose(kernel, target), globals);
      });
}

}  // namespace kiln::numerics
