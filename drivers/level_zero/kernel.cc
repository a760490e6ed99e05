#include "drivers/level_zero/kernel.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "drivers/common/check.h"
#include "drivers/level_zero/error.h"

namespace kiln::drivers::level_zero {
namespace {

// Only the first errors matter.
constexpr size_t kLogBytesMax = 2000;
// If a kernel with blocks of at most this many threads fails to build, registers are not the cause.
constexpr int kBlockThreadsSure = 64;

// Returns the vendor compiler's log and destroys it.
std::string TakeLog(const Library& ze, ze_module_build_log_handle_t log) {
  if (log == nullptr) return "";
  size_t size = 0;
  std::string text;
  if (ze.ModuleBuildLogGetString(log, &size, nullptr) == ZE_RESULT_SUCCESS && size > 0) {
    text.resize(size);
    if (ze.ModuleBuildLogGetString(log, &size, text.data()) != ZE_RESULT_SUCCESS) text.clear();
  }
  ze.ModuleBuildLogDestroy(log);
  text.resize(text.find_last_not_of('\0') + 1);
  absl::StripAsciiWhitespace(&text);
  if (text.size() > kLogBytesMax) text = absl::StrCat(text.substr(0, kLogBytesMax), "\n…");
  return text;
}

}  // namespace

absl::StatusOr<std::unique_ptr<LevelZeroKernel>> LevelZeroKernel::Load(
    std::shared_ptr<Context> context, const KernelImage& image) {
  const DeviceFacts& facts = context->facts();
  if (absl::Status status = CheckBlockImage(image, facts.target, "SPIR-V"); !status.ok())
    return status;
  if (image.grid_size > facts.grid_max) {
    return RefusedKernel(image, "has a grid of ", image.grid_size, " blocks; the device takes ",
                         facts.grid_max);
  }
  std::unique_ptr<LevelZeroKernel> kernel(new LevelZeroKernel(std::move(context), image));
  if (absl::Status status = kernel->Build(); !status.ok()) return status;
  if (absl::Status status = kernel->MakeFunction(); !status.ok()) return status;
  if (absl::Status status = kernel->CheckFunction(); !status.ok()) return status;
  return kernel;
}

LevelZeroKernel::~LevelZeroKernel() {
  const Library& ze = context_->ze();
  if (function_ != nullptr) ze.KernelDestroy(function_);
  if (module_ != nullptr) ze.ModuleDestroy(module_);
}

absl::Status LevelZeroKernel::Build() {
  const Library& ze = context_->ze();
  const bool is_finished = !image().finished.empty();
  const std::string& code = is_finished ? image().finished : image().code;
  ze_module_desc_t desc = {};
  desc.stype = ZE_STRUCTURE_TYPE_MODULE_DESC;
  desc.format = is_finished ? ZE_MODULE_FORMAT_NATIVE : ZE_MODULE_FORMAT_IL_SPIRV;
  desc.inputSize = code.size();
  desc.pInputModule = reinterpret_cast<const uint8_t*>(code.data());
  desc.pBuildFlags = context_->facts().build_options.c_str();
  ze_module_build_log_handle_t log = nullptr;
  const ze_result_t built =
      ze.ModuleCreate(context_->get(), context_->device(), &desc, &module_, &log);
  const std::string said = TakeLog(ze, log);
  if (built == ZE_RESULT_SUCCESS) return absl::OkStatus();
  module_ = nullptr;
  if (is_finished) {
    absl::Status failure = context_->Failure(
        absl::StrCat("the binary of the kernel ", image().name, " was refused"), built);
    // A device that is lost or out of memory loads nothing; other errors are about this binary.
    if (absl::IsUnavailable(failure) || absl::IsResourceExhausted(failure)) return failure;
    return FinishedRefused(failure.message());
  }
  if (built != ZE_RESULT_ERROR_MODULE_BUILD_FAILURE)
    return context_->Failure(absl::StrCat("cannot build the kernel ", image().name), built);
  const std::string why =
      absl::StrCat("the kernel ", image().name, " cannot be built:\n",
                   said.empty() ? "the vendor's compiler printed no message" : said);
  // The module requires its block size, which may need more registers than there are.
  if (image().block_size > kBlockThreadsSure) return BlocksTooLarge(why, kBlockThreadsSure);
  return absl::InvalidArgumentError(why);
}

absl::Status LevelZeroKernel::MakeFunction() {
  const Library& ze = context_->ze();
  uint32_t count = 0;
  ze_result_t code = ze.ModuleGetKernelNames(module_, &count, nullptr);
  if (code == ZE_RESULT_SUCCESS && count != 1)
    return RefusedKernel(image(), "has ", count, " entry points; one is needed");
  // Owned by the module, and valid as long as it.
  const char* name = nullptr;
  if (code == ZE_RESULT_SUCCESS) code = ze.ModuleGetKernelNames(module_, &count, &name);
  ze_kernel_desc_t desc = {};
  desc.stype = ZE_STRUCTURE_TYPE_KERNEL_DESC;
  desc.pKernelName = name;
  if (code == ZE_RESULT_SUCCESS) code = ze.KernelCreate(module_, &desc, &function_);
  if (code == ZE_RESULT_SUCCESS) return absl::OkStatus();
  function_ = nullptr;
  return context_->Failure(absl::StrCat("cannot make the kernel ", image().name), code);
}

absl::Status LevelZeroKernel::CheckFunction() const {
  const Library& ze = context_->ze();
  ze_kernel_properties_t properties = {};
  properties.stype = ZE_STRUCTURE_TYPE_KERNEL_PROPERTIES;
  ze_result_t code = ze.KernelGetProperties(function_, &properties);
  if (code != ZE_RESULT_SUCCESS)
    return context_->Failure(absl::StrCat("cannot inspect the kernel ", image().name), code);
  if (properties.numKernelArgs != static_cast<uint32_t>(image().num_parameters())) {
    return RefusedKernel(image(), "declares ", image().num_arguments, " arguments",
                         image().takes_slot_table ? " and a slot table" : "",
                         image().runs_parts ? " and its first grid point" : "",
                         ", but its function takes ", properties.numKernelArgs);
  }
  const auto block = static_cast<uint32_t>(image().block_size);
  if (properties.requiredGroupSizeX != 0 && properties.requiredGroupSizeX != block) {
    return RefusedKernel(image(), "declares blocks of ", image().block_size,
                         " threads, but its function needs ", properties.requiredGroupSizeX);
  }
  // Less than the device's maximum if a thread needs many registers.
  const auto threads =
      static_cast<int64_t>(properties.maxSubgroupSize) * properties.maxNumSubgroups;
  if (threads > 0 && image().block_size > threads) {
    return BlocksTooLarge(
        absl::StrCat("the kernel ", image().name, " has blocks of ", image().block_size,
                     " threads; in its built form the device allows ", threads),
        static_cast<int>(threads));
  }
  const Limits& limits = context_->facts().target.limits;
  if (properties.localMemSize > limits.shared_bytes_per_block) {
    return RefusedKernel(image(), "declares ", properties.localMemSize,
                         " bytes of shared memory; the device has ", limits.shared_bytes_per_block);
  }
  code = ze.KernelSetGroupSize(function_, block, 1, 1);
  // The kernel reads buffers' addresses from the slot table, so it may access any of them.
  if (code == ZE_RESULT_SUCCESS && image().takes_slot_table)
    code = ze.KernelSetIndirectAccess(function_, ZE_KERNEL_INDIRECT_ACCESS_FLAG_DEVICE);
  if (code == ZE_RESULT_SUCCESS) return absl::OkStatus();
  return context_->Failure(absl::StrCat("cannot prepare the kernel ", image().name), code);
}

absl::StatusOr<std::string> LevelZeroKernel::Binary() const {
  const Library& ze = context_->ze();
  size_t size = 0;
  ze_result_t code = ze.ModuleGetNativeBinary(module_, &size, nullptr);
  if (code == ZE_RESULT_ERROR_UNSUPPORTED_FEATURE || (code == ZE_RESULT_SUCCESS && size == 0))
    return absl::UnimplementedError("the device cannot return binaries");
  std::string binary(size, '\0');
  if (code == ZE_RESULT_SUCCESS) {
    code = ze.ModuleGetNativeBinary(module_, &size, reinterpret_cast<uint8_t*>(binary.data()));
  }
  if (code == ZE_RESULT_SUCCESS) return binary;
  return context_->Failure(absl::StrCat("cannot get the binary of the kernel ", image().name),
                           code);
}

}  // namespace kiln::drivers::level_zero
