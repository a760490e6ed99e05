#include "tests/numerics/run_spirv.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "compiler/codegen/codegen.h"
#include "compiler/codegen/spirv.h"
#include "compiler/machine_codes.h"
#include "compiler/pipeline.h"
#include "drivers/level_zero/driver.h"
#include "tests/numerics/some_gpu.h"

namespace kiln::numerics {
namespace {

using ops::HostTensor;

const codegen::MachineCode& SpirvCode() {
  return **compiler::FindMachineCode(codegen::kSpirvArchitecture);
}

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

absl::Status RunImage(drivers::Device& device, const drivers::KernelImage& image,
                      absl::Span<HostTensor* const> globals) {
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
  auto list = device.Prepare(
      {.num_slots = static_cast<int>(slots.size()), .commands = {std::move(launch)}});
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

}  // namespace

drivers::Target SpirvTarget() {
  drivers::Target target = SomeGpu();
  target.architecture = codegen::kSpirvArchitecture;
  target.limits.bytes_per_access = 16;
  target.capabilities = {.fma = true, .fp64 = true, .fp16 = true};
  return target;
}

absl::StatusOr<drivers::KernelImage> CompileToSpirv(const kernel::Kernel& kernel,
                                                    const schedule::Schedule& schedule,
                                                    const drivers::Target& target) {
  return codegen::CompileKernel(SpirvCode(), kernel, schedule, target);
}

std::string WhyNoSpirvRuns() { return TheSpirvDevice().why_none; }

absl::Status RunOnSpirv(const kernel::Kernel& kernel, const schedule::Schedule& schedule,
                        absl::Span<HostTensor* const> globals) {
  const auto image = CompileToSpirv(kernel, schedule, SpirvTarget());
  if (!image.ok()) return image.status();
  return RunImage(*TheSpirvDevice().device, *image, globals);
}

absl::StatusOr<kernel::PartitionResults> RunOnSpirv(const graph::Graph& graph,
                                                    absl::Span<const HostTensor> inputs) {
  const drivers::Target target = SpirvTarget();
  std::vector<compiler::PassReport> reports;
  const auto state = compiler::RunPasses(graph, target, {}, {}, &reports);
  if (!state.ok()) return state.status();
  return kernel::RunPartition(
      state->partition, inputs,
      [&target](const kernel::Kernel& kernel, absl::Span<HostTensor* const> globals) {
        return RunOnSpirv(kernel, SpirvCode().choose(kernel, target), globals);
      });
}

}  // namespace kiln::numerics
