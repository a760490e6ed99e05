#include "tests/numerics/run_amdgcn.h"

#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/codegen/amdgcn.h"
#include "compiler/codegen/codegen.h"
#include "compiler/machine_codes.h"
#include "compiler/pipeline.h"
#include "tests/numerics/some_gpu.h"
#include "tests/stand_ins/hsa/object/code_object.h"
#include "tests/stand_ins/hsa/object/twin.h"

namespace kiln::numerics {
namespace {

using ops::HostTensor;
namespace hsa = stand_ins::hsa;

const codegen::MachineCode& AmdgcnCode() {
  return **compiler::FindMachineCode(codegen::kAmdgcnArchitecture);
}

// Begins at a multiple of 64, and ends where an access behind it is one of another tensor's gap.
struct DeviceTensor {
  explicit DeviceTensor(const HostTensor& tensor)
      : words((tensor.bytes.size() + 63) / 64 * 8 + 16, ~uint64_t{0}) {
    if (!tensor.bytes.empty()) std::memcpy(begin(), tensor.bytes.data(), tensor.bytes.size());
  }
  char* begin() {
    const auto address = reinterpret_cast<uintptr_t>(words.data());
    return reinterpret_cast<char*>(words.data()) + ((address + 63) / 64 * 64 - address);
  }
  std::vector<uint64_t> words;
};

absl::Status RunImage(const drivers::KernelImage& image, const drivers::Target& target,
                      absl::Span<HostTensor* const> globals) {
  if (std::string wrong = WhatIsWrongWith(image, target); !wrong.empty())
    return absl::InternalError(wrong);
  const auto twin = hsa::Twin::Load(image.code);
  if (!twin.ok()) return twin.status();
  std::vector<DeviceTensor> tensors;
  tensors.reserve(globals.size());
  std::vector<uint64_t> table;
  std::vector<uint64_t> arguments = {0};
  for (const HostTensor* global : globals) {
    tensors.emplace_back(*global);
    arguments.push_back(drivers::PackSlot(static_cast<int>(table.size()), 0));
    table.push_back(reinterpret_cast<uint64_t>(tensors.back().begin()));
  }
  arguments[0] = reinterpret_cast<uint64_t>(table.data());
  const absl::Status status =
      (*twin)->Run({.blocks = static_cast<uint32_t>(image.grid_size),
                    .threads = static_cast<uint32_t>(image.block_size),
                    .wave = target.limits.threads_per_subgroup,
                    .shared_bytes = static_cast<uint32_t>(image.shared_bytes),
                    .arguments = arguments.data()});
  for (size_t i = 0; i < globals.size(); ++i) {
    if (!globals[i]->bytes.empty())
      std::memcpy(globals[i]->bytes.data(), tensors[i].begin(), globals[i]->bytes.size());
  }
  return status;
}

}  // namespace

drivers::Target AmdgcnTarget(const std::string& processor, int wave) {
  drivers::Target target = SomeGpu();
  target.architecture = codegen::kAmdgcnArchitecture;
  target.processor = processor;
  target.features = absl::StrCat("+", std::string(codegen::kHostTwinFeature));
  target.limits.threads_per_subgroup = wave;
  target.limits.threads_per_shuffle = processor.substr(0, 4) == "gfx9" ? 64 : 32;
  target.limits.bytes_per_access = 16;
  target.capabilities = {.fma = true, .fp64 = true, .fp16 = true};
  return target;
}

absl::StatusOr<drivers::KernelImage> CompileToAmdgcn(const kernel::Kernel& kernel,
                                                     const schedule::Schedule& schedule,
                                                     const drivers::Target& target) {
  return codegen::CompileKernel(AmdgcnCode(), kernel, schedule, target);
}

std::string WhatIsWrongWith(const drivers::KernelImage& image, const drivers::Target& target) {
  const auto object = hsa::ReadCodeObject(image.code);
  if (!object.ok()) return std::string(object.status().message());
  if (object->symbol != "kernel.kd") return absl::StrCat("the kernel is ", object->symbol);
  if (object->processor != target.processor) return absl::StrCat("it is for ", object->processor);
  if (object->wave != target.limits.threads_per_subgroup)
    return absl::StrCat("its subgroups have ", object->wave, " threads");
  if (object->threads != image.block_size || object->threads_max != image.block_size)
    return absl::StrCat("its blocks have ", object->threads, " threads of ", object->threads_max);
  if (object->group_bytes < image.shared_bytes || object->group_bytes > (64 << 10))
    return absl::StrCat("its blocks share ", object->group_bytes, " bytes");
  if (int64_t{object->argument_bytes} != 8 * (image.num_arguments + 1))
    return absl::StrCat("it has arguments of ", object->argument_bytes, " bytes");
  return "";
}

absl::Status RunOnAmdgcn(const kernel::Kernel& kernel, const schedule::Schedule& schedule,
                         const drivers::Target& target, absl::Span<HostTensor* const> globals) {
  const auto image = CompileToAmdgcn(kernel, schedule, target);
  return image.ok() ? RunImage(*image, target, globals) : image.status();
}

absl::StatusOr<kernel::PartitionResults> RunOnAmdgcn(const graph::Graph& graph,
                                                     const drivers::Target& target,
                                                     absl::Span<const HostTensor> inputs) {
  std::vector<compiler::PassReport> reports;
  const auto state = compiler::RunPasses(graph, target, {}, {}, &reports);
  if (!state.ok()) return state.status();
  return kernel::RunPartition(
      state->partition, inputs,
      [&target](const kernel::Kernel& kernel, absl::Span<HostTensor* const> globals) {
        return RunOnAmdgcn(kernel, AmdgcnCode().choose(kernel, target), target, globals);
      });
}

}  // namespace kiln::numerics
