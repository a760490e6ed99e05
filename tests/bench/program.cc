#include "tests/bench/program.h"

#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "compiler/graph/wire/wire.h"
#include "drivers/cpu/driver.h"
#include "drivers/opencl/driver.h"
#include "drivers/vendor_drivers.h"
#include "tests/opencl_platform.h"

namespace kiln::bench {

namespace {

absl::StatusOr<std::unique_ptr<drivers::Device>> OpenFirst(drivers::Driver& driver) {
  std::string why_none;
  auto devices = driver.Enumerate(&why_none);
  if (!devices.ok()) return devices.status();
  if (devices->empty()) return absl::UnavailableError(why_none);
  return std::move(devices->front());
}

absl::StatusOr<std::unique_ptr<drivers::Device>> OpenOpenCl(bool command_buffers) {
  using drivers::opencl::CommandBuffers;
  drivers::opencl::OpenClDriver driver(
      {.sharing_host_memory = true,
       .platform = OpenClPlatformToTest(),
       .command_buffers = command_buffers ? CommandBuffers::kAlways : CommandBuffers::kNever});
  return OpenFirst(driver);
}

}  // namespace

absl::StatusOr<std::unique_ptr<drivers::Device>> OpenCpu(int threads, const std::string& features) {
  drivers::cpu::CpuDriver driver(
      {.devices = 1, .threads_per_device = threads, .features = features});
  return OpenFirst(driver);
}

absl::StatusOr<std::unique_ptr<drivers::Device>> OpenDevice(const std::string& driver) {
  if (driver == "opencl") return OpenOpenCl(/*command_buffers=*/false);
  if (driver == "opencl_command_buffers") return OpenOpenCl(/*command_buffers=*/true);
  const auto vendor = drivers::MakeVendorDriver(driver, {.sharing_host_memory = true});
  if (vendor != nullptr) return OpenFirst(*vendor);
  return absl::InvalidArgumentError(absl::StrCat("there is no driver named ", driver));
}

absl::StatusOr<std::unique_ptr<Program>> Program::Make(drivers::Device& device,
                                                       const absl::StatusOr<Graph>& graph,
                                                       int repeat) {
  if (!graph.ok()) return graph.status();
  absl::StatusOr<graph::Graph> checked = graph::FromProto(graph->proto(), {});
  if (!checked.ok()) return checked.status();
  return Make(device, *checked, repeat);
}

absl::StatusOr<std::unique_ptr<Program>> Program::Make(drivers::Device& device,
                                                       const graph::Graph& graph, int repeat,
                                                       workers::KernelCompiler* kernel_compiler) {
  compiler::Options options;
  options.kernel_compiler = kernel_compiler;
  options.now = absl::Now;
  options.threads = 2;
  auto compiled = compiler::Compile(graph, device.info().target, options);
  if (!compiled.ok()) return compiled.status();
  std::unique_ptr<Program> program(new Program(device));
  program->compiled_ = *std::move(compiled);
  if (absl::Status status = program->AllocateSlots(); !status.ok()) return status;
  if (absl::Status status = program->Load(repeat); !status.ok()) return status;
  return program;
}

absl::Status Program::AllocateSlots() {
  std::minstd_rand random(1);
  std::uniform_real_distribution<float> values(-1, 1);
  for (const compiler::Slot& slot : compiled_.slots) {
    auto buffer = device_.Allocate(slot.bytes);
    if (!buffer.ok()) return buffer.status();
    if (slot.kind == compiler::Slot::Kind::kInput) {
      std::vector<float> data(static_cast<size_t>(slot.bytes / 4));
      for (float& value : data) value = values(random);
      absl::Status status = device_.CopyToDevice(
          **buffer, 0, {reinterpret_cast<const char*>(data.data()), data.size() * sizeof(float)});
      if (!status.ok()) return status;
    }
    slots_.push_back(buffer->get());
    buffers_.push_back(*std::move(buffer));
  }
  return absl::OkStatus();
}

absl::Status Program::Load(int repeat) {
  for (const compiler::CompiledKernel& kernel : compiled_.kernels) {
    auto loaded = device_.LoadKernel(kernel.image);
    if (!loaded.ok()) return loaded.status();
    kernels_.push_back(*std::move(loaded));
  }
  drivers::CommandList list;
  list.num_slots = static_cast<int>(compiled_.slots.size());
  for (size_t i = 0; i < compiled_.calls.size() * repeat; ++i) {
    const compiler::KernelCall& call = compiled_.calls[i % compiled_.calls.size()];
    drivers::LaunchCommand launch{.kernel = kernels_[call.kernel].get(), .arguments = {}};
    for (const compiler::Argument& argument : call.arguments) {
      launch.arguments.push_back({argument.slot, argument.offset, argument.bytes});
    }
    list.commands.emplace_back(std::move(launch));
  }
  auto prepared = device_.Prepare(std::move(list));
  if (!prepared.ok()) return prepared.status();
  list_ = *std::move(prepared);
  return absl::OkStatus();
}

absl::Status Program::Run(int times) {
  absl::BlockingCounter left(times);
  absl::Status failed;
  for (int i = 0; i < times; ++i) {
    absl::Status status =
        device_.Submit(*list_, slots_, {}, [&](const drivers::SubmitResult& result) {
          // Lists complete one after another on the device's thread, so this needs no lock.
          if (!result.status.ok()) failed = result.status;
          left.DecrementCount();
        });
    if (!status.ok()) return status;
  }
  left.Wait();
  return failed;
}

absl::Status Program::SwapBuffers() {
  std::swap(slots_, other_slots_);
  return slots_.empty() ? AllocateSlots() : absl::OkStatus();
}

absl::StatusOr<std::vector<double>> Program::RunTimed() {
  absl::Notification done;
  drivers::SubmitResult timed;
  absl::Status status = device_.Submit(*list_, slots_, {.time_commands = true, .group = nullptr},
                                       [&](const drivers::SubmitResult& result) {
                                         timed = result;
                                         done.Notify();
                                       });
  if (!status.ok()) return status;
  done.WaitForNotification();
  if (!timed.status.ok()) return timed.status;
  // A list with repeats has more commands than the program has calls.
  timed.command_seconds.resize(compiled_.calls.size());
  return timed.command_seconds;
}

int Program::SlotOf(compiler::Slot::Kind kind, int index) const {
  for (size_t i = 0; i < compiled_.slots.size(); ++i) {
    if (compiled_.slots[i].kind == kind && compiled_.slots[i].index == index)
      return static_cast<int>(i);
  }
  return -1;
}

float* Program::input(int index) const {
  return static_cast<float*>(
      slots_.at(SlotOf(compiler::Slot::Kind::kInput, index))->host_pointer());
}
float* Program::output(int index) const {
  return static_cast<float*>(
      slots_.at(SlotOf(compiler::Slot::Kind::kOutput, index))->host_pointer());
}

}  // namespace kiln::bench
