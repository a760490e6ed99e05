#include "tests/numerics/compiled/run_compiled.h"

#include <cstring>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/notification.h"
#include "compiler/autodiff/differentiate.h"
#include "compiler/compiler.h"
#include "compiler/graph/verify.h"
#include "compiler/ops/testing/evaluate.h"
#include "drivers/cpu/driver.h"
#include "drivers/vendor_drivers.h"
#include "tests/numerics/compare.h"
#include "tests/numerics/compiled/random_choices.h"
#include "tests/numerics/target.h"
#include "tests/opencl_platform.h"

namespace kiln::numerics {
namespace {

using compiler::CompiledProgram;
using compiler::Slot;
using ops::HostTensor;

// The device objects of a run.
struct Loaded {
  std::vector<std::unique_ptr<drivers::LoadedKernel>> kernels;
  std::vector<std::unique_ptr<drivers::Buffer>> buffers;
  std::unique_ptr<drivers::PreparedList> list;
};

drivers::SlotRange Range(const compiler::Argument& argument) {
  return {argument.slot, argument.offset, argument.bytes};
}

// Buffers start with a pattern that is not a plausible number, so that elements that a kernel does
// not write show.
absl::Status Allocate(drivers::Device& device, const CompiledProgram& program,
                      absl::Span<const HostTensor> inputs, Loaded& loaded) {
  for (const Slot& slot : program.slots) {
    auto buffer = device.Allocate(slot.bytes);
    if (!buffer.ok()) return buffer.status();
    std::string bytes(static_cast<size_t>(slot.bytes), '\xA5');
    if (slot.kind == Slot::Kind::kInput && slot.bytes > 0) {
      if (slot.index >= static_cast<int>(inputs.size())) {
        return absl::InvalidArgumentError(absl::StrCat("input ", slot.index, " has no value"));
      }
      const auto& value = inputs[slot.index].bytes;
      if (static_cast<int64_t>(value.size()) < slot.bytes) {
        return absl::InvalidArgumentError(absl::StrCat("input ", slot.index, " has ", value.size(),
                                                       " bytes and takes ", slot.bytes));
      }
      std::memcpy(bytes.data(), value.data(), bytes.size());
    }
    if (auto status = device.CopyToDevice(**buffer, 0, bytes); !status.ok()) return status;
    loaded.buffers.push_back(*std::move(buffer));
  }
  return absl::OkStatus();
}

absl::Status Load(drivers::Device& device, const CompiledProgram& program, Loaded& loaded) {
  for (const compiler::CompiledKernel& kernel : program.kernels) {
    auto image = device.LoadKernel(kernel.image);
    if (!image.ok()) return image.status();
    loaded.kernels.push_back(*std::move(image));
  }
  drivers::CommandList list;
  list.num_slots = static_cast<int>(program.slots.size());
  for (const compiler::KernelCall& call : program.calls) {
    drivers::LaunchCommand launch;
    launch.kernel = loaded.kernels[call.kernel].get();
    for (const compiler::Argument& argument : call.arguments) {
      launch.arguments.push_back(Range(argument));
    }
    list.commands.emplace_back(std::move(launch));
  }
  for (const CompiledProgram::Copy& copy : program.copies) {
    list.commands.emplace_back(drivers::CopyCommand{Range(copy.source), Range(copy.destination)});
  }
  auto prepared = device.Prepare(std::move(list));
  if (!prepared.ok()) return prepared.status();
  loaded.list = *std::move(prepared);
  return absl::OkStatus();
}

absl::Status Submit(drivers::Device& device, Loaded& loaded) {
  std::vector<drivers::Buffer*> slots;
  for (const auto& buffer : loaded.buffers) slots.push_back(buffer.get());
  absl::Notification done;
  absl::Status result;
  const absl::Status submitted =
      device.Submit(*loaded.list, slots, {}, [&](drivers::SubmitResult finished) {
        result = finished.status;
        done.Notify();
      });
  if (!submitted.ok()) return submitted;
  done.WaitForNotification();
  return result;
}

std::unique_ptr<drivers::Driver> MakeDriver(const std::string& name) {
  if (name == "cpu") {
    return std::make_unique<drivers::cpu::CpuDriver>(
        drivers::cpu::CpuOptions{.devices = 1, .threads_per_device = 2, .features = CpuFeatures()});
  }
  return drivers::MakeVendorDriver(
      name, {.sharing_host_memory = true, .platform = OpenClPlatformToTest()});
}

// One for the process, so that its threads are started once.
std::unique_ptr<drivers::Device>& DeviceInUse() {
  static auto& device = *new std::unique_ptr<drivers::Device>;
  return device;
}

drivers::Device& TheDevice() {
  static const absl::Status opened = DeviceInUse() == nullptr ? UseDevice("cpu") : absl::OkStatus();
  if (!opened.ok()) std::cerr << opened << std::endl;
  return *DeviceInUse();
}

compiler::Options& CompilerOptions() {
  static compiler::Options& options = *new compiler::Options;
  return options;
}

uint64_t& SeedOfChoices() {
  static uint64_t seed = 0;
  return seed;
}

absl::Status CheckSchedules(const CompiledProgram& program) {
  for (const compiler::GraphChoices& choices : program.choices) {
    if (choices.refusal.empty()) continue;
    return absl::InternalError(
        absl::StrCat("choices were refused: ", choices.refusal, "\n", choices.text));
  }
  for (const compiler::CompiledKernel& kernel : program.kernels) {
    if (!kernel.refusal.empty()) {
      return absl::InternalError(absl::StrCat("a schedule was refused: ", kernel.refusal, "\n",
                                              kernel.refused_schedule, kernel.ir));
    }
    if (!kernel.setting_refusal.empty()) {
      return absl::InternalError(absl::StrCat("a setting was refused: ", kernel.setting_refusal,
                                              "\n", kernel.setting, kernel.ir));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<HostTensor>> RunWith(const graph::Graph& graph,
                                                absl::Span<const HostTensor> inputs,
                                                compiler::Options options,
                                                CompiledProgram* program_run) {
  drivers::Device& device = TheDevice();
  if (SeedOfChoices() != 0) {
    const uint64_t seed = SeedOfChoices() + std::hash<std::string>()(graph::Print(graph));
    const auto text = RandomChoices(graph, device.info().target, options, seed);
    if (!text.ok()) return text.status();
    options.choices = [text = *text](const std::string&, const drivers::Target&) {
      return text.empty() ? std::nullopt : std::make_optional(text);
    };
  }
  auto program = compiler::Compile(graph, device.info().target, options);
  if (!program.ok()) return program.status();
  if (auto status = CheckSchedules(*program); !status.ok()) return status;
  Loaded loaded;
  if (auto status = Allocate(device, *program, inputs, loaded); !status.ok()) return status;
  if (auto status = Load(device, *program, loaded); !status.ok()) return status;
  if (auto status = Submit(device, loaded); !status.ok()) return status;
  std::vector<HostTensor> outputs;
  for (const ir::Node* output : graph.outputs) {
    outputs.push_back(HostTensor::Zeros(output->dtype(), output->shape()));
  }
  for (size_t i = 0; i < program->slots.size(); ++i) {
    const Slot& slot = program->slots[i];
    if (slot.kind != Slot::Kind::kOutput || slot.bytes == 0) continue;
    auto* bytes = reinterpret_cast<char*>(outputs[slot.index].bytes.data());
    const absl::Status read = device.CopyToHost(
        *loaded.buffers[i], 0, absl::MakeSpan(bytes, outputs[slot.index].bytes.size()));
    if (!read.ok()) return read;
  }
  if (program_run != nullptr) *program_run = *std::move(program);
  return outputs;
}

}  // namespace

absl::Status UseDevice(const std::string& driver_name) {
  const auto driver = MakeDriver(driver_name);
  if (driver == nullptr) {
    std::string names = "cpu";
    for (const auto& row : drivers::VendorDrivers()) absl::StrAppend(&names, ", ", row.name);
    return absl::InvalidArgumentError(
        absl::StrCat("no device is called ", driver_name, "; there are ", names));
  }
  std::string why_none;
  auto devices = driver->Enumerate(&why_none);
  if (!devices.ok()) return devices.status();
  if (devices->empty()) return absl::FailedPreconditionError(why_none);
  DeviceInUse() = std::move(devices->front());
  std::cout << "on " << DeviceInUse()->info().name << ", " << DeviceInUse()->info().model
            << std::endl;
  return absl::OkStatus();
}

void ChooseAtRandom(uint64_t seed) { SeedOfChoices() = seed; }

absl::Status DisablePasses(const std::string& names) {
  compiler::Options options;
  options.disabled_passes = absl::StrSplit(names, ',', absl::SkipEmpty());
  absl::Status status = compiler::CheckPassNames(options);
  if (status.ok()) CompilerOptions() = std::move(options);
  return status;
}

absl::StatusOr<std::vector<HostTensor>> RunCompiled(const graph::Graph& graph,
                                                    absl::Span<const HostTensor> inputs,
                                                    CompiledProgram* program) {
  return RunWith(graph, inputs, CompilerOptions(), program);
}

absl::StatusOr<std::vector<HostTensor>> RunTuned(const graph::Graph& graph,
                                                 absl::Span<const HostTensor> inputs,
                                                 decltype(compiler::Options::tuned) tuned,
                                                 CompiledProgram* program) {
  compiler::Options options = CompilerOptions();
  options.tuned = std::move(tuned);
  return RunWith(graph, inputs, options, program);
}

absl::StatusOr<std::string> CompareWithInterpreter(const graph::Graph& graph,
                                                   absl::Span<const HostTensor> inputs,
                                                   absl::Span<const double> tolerances,
                                                   CompiledProgram* program) {
  if (tolerances.size() < graph.outputs.size()) {
    return absl::InvalidArgumentError("an output has no tolerance");
  }
  if (auto legal = graph::Verify(graph); !legal.ok()) return legal;
  const auto differentiated = autodiff::Differentiate(graph);
  if (!differentiated.ok()) return differentiated.status();
  if (auto legal = graph::Verify(*differentiated); !legal.ok()) return legal;
  const auto expected = ops::Evaluate(differentiated->outputs, inputs);
  if (!expected.ok()) return expected.status();
  const auto actual = RunCompiled(graph, inputs, program);
  if (!actual.ok()) return actual.status();
  for (size_t i = 0; i < expected->size(); ++i) {
    const std::string difference =
        Difference((*actual)[i], (*expected)[i], tolerances[i], tolerances[i]);
    if (!difference.empty()) return absl::StrCat("output ", i, ": ", difference);
  }
  return "";
}

std::string Disagreement(const graph::Graph& graph, absl::Span<const HostTensor> inputs,
                         absl::Span<const double> tolerances, CompiledProgram* program) {
  const auto difference = CompareWithInterpreter(graph, inputs, tolerances, program);
  return difference.ok() ? *difference : difference.status().ToString();
}

std::string Disagreement(const graph::Graph& graph, absl::Span<const HostTensor> inputs,
                         double tolerance) {
  const std::vector<double> tolerances(graph.outputs.size(), tolerance);
  return Disagreement(graph, inputs, tolerances);
}

}  // namespace kiln::numerics
