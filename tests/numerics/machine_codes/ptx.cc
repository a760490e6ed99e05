// Kernels as PTX.
#include "compiler/codegen/nvptx/ptx.h"

#include <cstring>
#include <memory>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/numerics/cases/primitive_values.h"
#include "tests/numerics/machine_codes/machine_code.h"
#include "tests/numerics/machine_codes/ptxas.h"
#include "tests/numerics/machine_codes/some_gpu.h"
#include "tests/stand_ins/cuda/ptx/interpret.h"
#include "tests/stand_ins/cuda/ptx/load.h"

namespace kiln::numerics {
namespace {

using ops::HostTensor;
namespace ptx = stand_ins::ptx;

// Device memory at addresses that differ from the host's and are far apart.
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

absl::Status RunPtx(const drivers::KernelImage& image, const drivers::Target&,
                    absl::Span<HostTensor* const> globals) {
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
  if (image.runs_parts) numbers.push_back(0);
  for (const drivers::GridRange& part : PartsOf(image)) {
    if (image.runs_parts) numbers.back() = static_cast<uint64_t>(part.begin);
    std::vector<uint8_t> parameters(numbers.size() * sizeof(uint64_t));
    std::memcpy(parameters.data(), numbers.data(), parameters.size());
    ptx::LaunchShape shape;
    shape.grid[0] = static_cast<uint32_t>(part.size());
    shape.block[0] = static_cast<uint32_t>(image.block_size);
    const ptx::LaunchResult result =
        ptx::Launch((*module)->program, *entry, shape, parameters, memory.memory(), {});
    if (result.fault.kind != ptx::FaultKind::kNone)
      return absl::InternalError(absl::StrCat(result.fault.message, "\n", image.code));
  }
  for (size_t i = 0; i < globals.size(); ++i)
    std::memcpy(globals[i]->bytes.data(), arguments[i].host, globals[i]->bytes.size());
  return absl::OkStatus();
}

// Checks that each operation is rounded separately and keeps denormals, and that none is
// approximated.
std::string WhatIsWrongWithPtx(const WrittenKernel& kernel) {
  const std::string& ptx = kernel.image.code;
  const std::string& processor = kernel.target.processor;
  if (!absl::StrContains(ptx, absl::StrCat(".target ", processor)))
    return absl::StrCat("it is not for ", processor);
  for (const char* word : {".ftz", ".approx"}) {
    if (absl::StrContains(ptx, word)) return absl::StrCat("it has ", word);
  }
  const int64_t shared_bytes = kernel.image.shared_bytes;
  if (shared_bytes > 0 && !absl::StrContains(ptx, absl::StrCat("shared[", shared_bytes, "]")))
    return absl::StrCat("its blocks do not share ", shared_bytes, " bytes");
  if (Ptxas().empty()) return "";
  const ToolSays assembled = Assemble(ptx, processor);
  if (assembled.status != 0) return assembled.text;
  // If a schedule keeps much data for each thread, it does not fit into registers.
  return absl::StrContains(ptx, ".local") || SaysNoSpills(assembled) ? "" : assembled.text;
}

std::string WhatIsWrongWithAllPtx(const std::vector<WrittenKernel>& kernels) {
  std::string wrong;
  for (const WrittenKernel& kernel : kernels) {
    if (const std::string one = WhatIsWrongWithPtx(kernel); !one.empty())
      absl::StrAppend(&wrong, one, "\n", kernel.image.code);
  }
  return wrong;
}

}  // namespace

drivers::Target PtxTarget(const std::string& processor, const std::string& features) {
  drivers::Target target = SomeGpu();
  target.architecture = codegen::kPtxArchitecture;
  target.processor = processor;
  target.features = features;
  target.limits.threads_per_shuffle = 32;
  target.limits.bytes_per_access = 16;
  const bool ampere = processor != "sm_75";
  target.capabilities = {.fma = true,
                         .fp64 = true,
                         .fp16 = true,
                         .bf16 = ampere,
                         .matrix = ampere,
                         .async_copies = ampere};
  return target;
}

const MachineCode& Ptx() {
  static const auto& row = *new MachineCode{
      .name = "ptx",
      .target = PtxTarget(),
      .generations = {PtxTarget("sm_75"), PtxTarget("sm_80"), PtxTarget("sm_90"),
                      PtxTarget("sm_100", "+ptx86")},
      .thread_targets = {{.target = PtxTarget("sm_75"), .is_run = false},
                         {.target = PtxTarget(), .is_read = false}},
      .closeness = ClosenessOf,
      .what_is_wrong = WhatIsWrongWithAllPtx,
      .why_unread = []() -> std::string {
        return Ptxas().empty() ? "no ptxas on $PATH or in $KILN_PTXAS: nothing is assembled" : "";
      },
      .why_not_run = [] { return std::string(); },
      .run = RunPtx};
  return row;
}

}  // namespace kiln::numerics
