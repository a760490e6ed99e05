// Kernels as SPIR-V.
#include "compiler/codegen/spirv/spirv.h"

#include <cstdlib>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "drivers/level_zero/driver.h"
#include "tests/numerics/cases/primitive_values.h"
#include "tests/numerics/machine_codes/machine_code.h"
#include "tests/numerics/machine_codes/outside_tools.h"
#include "tests/numerics/machine_codes/some_gpu.h"

namespace kiln::numerics {
namespace {

using ops::HostTensor;

struct SpirvDevice {
  std::unique_ptr<drivers::Device> device;  // null: there is none
  std::string why_none;
};

// One for the process.
const SpirvDevice& TheSpirvDevice() {
  static const SpirvDevice& opened = *[] {
    auto* found = new SpirvDevice;
    auto devices = drivers::level_zero::LevelZeroDriver({.library = KILN_LEVEL_ZERO_STAND_IN})
                       .Enumerate(&found->why_none);
    if (devices.ok() && !devices->empty()) found->device = std::move(devices->front());
    return found;
  }();
  return opened;
}

absl::Status RunSpirv(const drivers::KernelImage& image, const drivers::Target&,
                      absl::Span<HostTensor* const> globals) {
  if (TheSpirvDevice().device == nullptr)
    return absl::FailedPreconditionError(TheSpirvDevice().why_none);
  drivers::Device& device = *TheSpirvDevice().device;
  auto kernel = device.LoadKernel(image);
  if (!kernel.ok()) return kernel.status();
  drivers::LaunchCommand launch{kernel->get(), {}};
  std::vector<std::unique_ptr<drivers::Buffer>> buffers;
  std::vector<drivers::Buffer*> slots;
  const auto bytes_of = [](HostTensor& tensor) {
    return absl::MakeSpan(reinterpret_cast<char*>(tensor.bytes.data()), tensor.bytes.size());
  };
  for (HostTensor* global : globals) {
    const auto bytes = static_cast<int64_t>(global->bytes.size());
    auto buffer = device.Allocate(bytes);
    if (!buffer.ok()) return buffer.status();
    absl::Status copied = device.CopyToDevice(**buffer, 0, bytes_of(*global));
    if (!copied.ok()) return copied;
    launch.arguments.push_back({static_cast<int>(slots.size()), 0, bytes});
    slots.push_back(buffer->get());
    buffers.push_back(*std::move(buffer));
  }
  drivers::CommandList commands{.num_slots = static_cast<int>(slots.size())};
  for (const drivers::GridRange& part : PartsOf(image)) {
    launch.points = part;
    commands.commands.push_back(launch);
  }
  auto list = device.Prepare(std::move(commands));
  if (!list.ok()) return list.status();
  absl::Notification ended;
  absl::Status result;
  absl::Status submitted = device.Submit(**list, slots, {}, [&](drivers::SubmitResult finished) {
    result = finished.status;
    ended.Notify();
  });
  if (!submitted.ok()) return submitted;
  ended.WaitForNotification();
  for (size_t i = 0; i < globals.size() && result.ok(); ++i)
    result = device.CopyToHost(*buffers[i], 0, bytes_of(*globals[i]));
  return result;
}

// Returns which of the Intel GPUs that ocloc knows have float64.
bool HasFloat64(const std::string& device) { return device == "pvc"; }

// Runs the command for each file, which it refers to as $f. Returns the output of failed runs;
// empty if none failed.
std::string WhatToolRefuses(const std::string& command, const std::set<std::string>& modules) {
  const std::vector<std::string> files(modules.begin(), modules.end());
  const ToolSays says = RunTool(absl::StrCat("status=0; for f in ", FileNames(files.size()),
                                             "; do ", command, " || status=1; done; exit $status"),
                                files);
  return says.status == 0 ? "" : absl::StrCat(command, ": ", says.text);
}

std::string WhatIsWrongWithSpirv(const std::vector<WrittenKernel>& kernels) {
  const char* gpu = std::getenv("KILN_TEST_OCLOC");
  // Missing features of targets seldom change a kernel, so each module is read once.
  std::set<std::string> all, for_gpu;
  for (const auto& [image, target] : kernels) {
    all.insert(image.code);
    if (gpu != nullptr && target.capabilities.fp64 == HasFloat64(gpu)) for_gpu.insert(image.code);
  }
  std::string wrong;
  // For any environment, since those of OpenCL 2.1 and 2.2 refuse float16.
  const std::string validator = FindProgram("spirv-val");
  if (!validator.empty()) wrong = WhatToolRefuses(absl::StrCat(validator, " $f"), all);
  if (for_gpu.empty()) return wrong;
  return absl::StrCat(wrong, WhatToolRefuses(absl::StrCat(FindProgram("ocloc"),
                                                          " compile -spirv_input -file $f -device ",
                                                          gpu, " -output kernel"),
                                             for_gpu));
}

drivers::Target SpirvTarget(bool fp64, bool fp16) {
  drivers::Target target = SomeGpu();
  target.architecture = codegen::kSpirvArchitecture;
  target.limits.bytes_per_access = 16;
  target.capabilities = {.fma = true, .fp64 = fp64, .fp16 = fp16};
  return target;
}

}  // namespace

const MachineCode& Spirv() {
  static const auto& row = *new MachineCode{
      .name = "spirv",
      .target = SpirvTarget(true, true),
      // Also devices without features that some GPUs lack.
      .generations = {SpirvTarget(true, true), SpirvTarget(false, true), SpirvTarget(false, false)},
      .thread_targets = {{SpirvTarget(true, true)}},
      .closeness = ClosenessOf,
      .what_is_wrong = WhatIsWrongWithSpirv,
      .why_unread = []() -> std::string {
        const bool found = !FindProgram("spirv-val").empty();
        return found ? "" : "no spirv-val on $PATH (Debian: spirv-tools): nothing is validated";
      },
      .why_not_run = [] { return TheSpirvDevice().why_none; },
      .run = RunSpirv};
  return row;
}

}  // namespace kiln::numerics
