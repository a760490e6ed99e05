// Kernels as code objects for AMD's GPUs.
#include "compiler/codegen/amdgcn/amdgcn.h"

#include <unistd.h>

#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/numerics/cases/primitive_values.h"
#include "tests/numerics/machine_codes/machine_code.h"
#include "tests/numerics/machine_codes/outside_tools.h"
#include "tests/numerics/machine_codes/some_gpu.h"
#include "tests/stand_ins/hsa/object/code_object.h"
#include "tests/stand_ins/hsa/object/twin.h"

namespace kiln::numerics {
namespace {

using ops::HostTensor;
namespace hsa = stand_ins::hsa;

// Returns how the code object's metadata contradicts the image or the target; empty if it does not.
std::string WhatItSaysWrong(const drivers::KernelImage& image, const drivers::Target& target) {
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
  if (int64_t{object->argument_bytes} != 8 * image.num_parameters())
    return absl::StrCat("it has arguments of ", object->argument_bytes, " bytes");
  return "";
}

// Begins at a multiple of 64, and is followed by a gap, so that an access past its end is not
// within another tensor.
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

absl::Status RunTwin(const drivers::KernelImage& image, const drivers::Target& target,
                     absl::Span<HostTensor* const> globals) {
  if (std::string wrong = WhatItSaysWrong(image, target); !wrong.empty())
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
  if (image.runs_parts) arguments.push_back(0);
  absl::Status status;
  for (const drivers::GridRange& part : PartsOf(image)) {
    if (image.runs_parts) arguments.back() = static_cast<uint64_t>(part.begin);
    if (!status.ok()) break;
    status = (*twin)->Run({.blocks = static_cast<uint32_t>(part.size()),
                           .threads = static_cast<uint32_t>(image.block_size),
                           .wave = target.limits.threads_per_subgroup,
                           .shared_bytes = static_cast<uint32_t>(image.shared_bytes),
                           .arguments = arguments.data()});
  }
  for (size_t i = 0; i < globals.size(); ++i) {
    if (!globals[i]->bytes.empty())
      std::memcpy(globals[i]->bytes.data(), tensors[i].begin(), globals[i]->bytes.size());
  }
  return status;
}

std::string WhyNoLlvmToolReads() {
  for (const char* tool : {KILN_LLVM_TOOLS "/llvm-readelf", KILN_LLVM_TOOLS "/llvm-objdump"}) {
    if (access(tool, X_OK) != 0) return absl::StrCat("there is no ", tool);
  }
  return "";
}

// llvm-readelf and llvm-objdump must identify each of the files, all for one target, correctly.
std::string WhatToolsFindWrong(const std::vector<std::string>& files,
                               const std::string& processor) {
  const std::string names = FileNames(files.size());
  const ToolSays notes =
      RunTool(absl::StrCat(KILN_LLVM_TOOLS "/llvm-readelf --notes ", names), files);
  const ToolSays code =
      RunTool(absl::StrCat(KILN_LLVM_TOOLS "/llvm-objdump -d --section=.text ", names), files);
  const std::vector<absl::string_view> targets =
      absl::StrSplit(notes.text, "amdhsa.target:   amdgcn-amd-amdhsa--");
  const std::vector<absl::string_view> texts =
      absl::StrSplit(code.text, "file format elf64-amdgpu");
  const auto has = [](absl::string_view text, absl::string_view part) {
    return absl::StrContains(text, part);
  };
  bool right = notes.status == 0 && !has(notes.text, "hidden_") &&
               targets.size() == files.size() + 1 && code.status == 0 &&
               !has(code.text, "<unknown>") && !has(code.text, "warning") &&
               texts.size() == files.size() + 1;
  for (size_t i = 1; right && i <= files.size(); ++i) {
    right =
        absl::StartsWith(targets[i], absl::StrCat(processor, "\n")) && has(texts[i], "s_endpgm");
  }
  return right ? "" : absl::StrCat(notes.text, code.text);
}

std::string WhatIsWrongWithCodeObjects(const std::vector<WrittenKernel>& kernels) {
  // llvm-objdump assumes that all of its files are for the first one's processor.
  std::map<std::pair<std::string, int>, std::vector<std::string>> files;
  for (const auto& [image, target] : kernels) {
    const int wave = target.limits.threads_per_subgroup;
    const std::string where = absl::StrCat(target.processor, " ", wave, ": ");
    const std::string wrong = WhatItSaysWrong(image, target);
    if (!wrong.empty()) return absl::StrCat(where, wrong);
    const auto text = codegen::DisassembleCodeObject(image.code, target);
    if (!text.ok()) return absl::StrCat(where, text.status().ToString());
    if (!absl::StrContains(*text, "kernel:\n") || !absl::StrContains(*text, "s_endpgm") ||
        absl::StrContains(*text, "(not an instruction)"))
      return absl::StrCat(where, *text);
    files[{target.processor, wave}].push_back(image.code);
  }
  if (!WhyNoLlvmToolReads().empty()) return "";
  std::string wrong;
  for (const auto& [target, all] : files)
    absl::StrAppend(&wrong, WhatToolsFindWrong(all, target.first));
  return wrong;
}

// Subgroups of the two sizes exchange values in two ways.
std::vector<drivers::Target> AmdgcnTargets() {
  return {AmdgcnTarget("gfx90a", 64),  AmdgcnTarget("gfx942", 64),  AmdgcnTarget("gfx1030", 32),
          AmdgcnTarget("gfx1030", 64), AmdgcnTarget("gfx1100", 32), AmdgcnTarget("gfx1100", 64),
          AmdgcnTarget("gfx1201", 32), AmdgcnTarget("gfx1201", 64)};
}

std::vector<ThreadTarget> AmdgcnThreadTargets() {
  std::vector<ThreadTarget> targets;
  for (const drivers::Target& target : AmdgcnTargets()) targets.push_back({target});
  return targets;
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

const MachineCode& Amdgcn() {
  static const auto& row = *new MachineCode{.name = "amdgcn",
                                            .target = AmdgcnTarget(),
                                            .generations = AmdgcnTargets(),
                                            .thread_targets = AmdgcnThreadTargets(),
                                            .closeness = ClosenessOf,
                                            .what_is_wrong = WhatIsWrongWithCodeObjects,
                                            .why_unread = WhyNoLlvmToolReads,
                                            .why_not_run = [] { return std::string(); },
                                            .run = RunTwin};
  return row;
}

}  // namespace kiln::numerics
