#include "drivers/hsa/kernel.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "drivers/common/check.h"
#include "drivers/hsa/error.h"

namespace kiln::drivers::hsa {
namespace {

constexpr char kDescriptor[] = "kernel.kd";

template <typename... Parts>
absl::Status Refused(const KernelImage& image, const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("the kernel ", image.name, " ", parts...));
}

absl::Status CheckCode(const KernelImage& image, const Target& target) {
  if (absl::Status status = CheckImage(image, target.architecture); !status.ok()) return status;
  if (image.code.empty()) return Refused(image, "has no code");
  if (image.entry != 0 || image.scratch_bytes != 0) {
    return Refused(image, "has an entry at ", image.entry, " and ", image.scratch_bytes,
                   " bytes of scratch; code objects have neither");
  }
  const Limits& limits = target.limits;
  if (image.block_size > limits.threads_per_block) {
    return Refused(image, "has blocks of ", image.block_size, " threads; the device takes ",
                   limits.threads_per_block);
  }
  if (image.shared_bytes > limits.shared_bytes_per_block) {
    return Refused(image, "shares ", image.shared_bytes, " bytes in a block; the device has ",
                   limits.shared_bytes_per_block);
  }
  if (image.num_arguments > limits.arguments_max) {
    return Refused(image, "takes ", image.num_arguments, " arguments; the device takes ",
                   limits.arguments_max);
  }
  // The grid is counted in threads, in 32 bits.
  if (image.grid_size > std::numeric_limits<uint32_t>::max() / image.block_size)
    return Refused(image, "has a grid of ", image.grid_size, " blocks of ", image.block_size,
                   " threads; at most 2^32 - 1 threads are allowed");
  return absl::OkStatus();
}

// Whether the error is caused by the code.
bool BlamesCode(hsa_status_t code) {
  switch (code) {
    case HSA_STATUS_ERROR_INVALID_CODE_OBJECT:
    case HSA_STATUS_ERROR_INVALID_SYMBOL_NAME:
    case HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS:
    case HSA_STATUS_ERROR_INVALID_ISA:
    case HSA_STATUS_ERROR_INVALID_ARGUMENT:
      return true;
    default:
      return false;
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<HsaKernel>> HsaKernel::Load(std::shared_ptr<Context> context,
                                                           const Target& target,
                                                           const KernelImage& image) {
  if (absl::Status status = CheckCode(image, target); !status.ok()) return status;
  std::unique_ptr<HsaKernel> kernel(new HsaKernel(std::move(context), image));
  const Library& hsa = kernel->context_->hsa();
  hsa_code_object_reader_t reader = {};
  const hsa_status_t code = hsa.code_object_reader_create_from_memory(
      kernel->image_.code.data(), kernel->image_.code.size(), &reader);
  if (code != HSA_STATUS_SUCCESS)
    return Refused(image, "has a code object that cannot be read: ", ErrorName(hsa, code));
  absl::Status status = kernel->LoadCode(reader);
  hsa.code_object_reader_destroy(reader);
  if (status.ok()) status = kernel->CheckSymbol(kernel->symbol_, target.limits);
  if (!status.ok()) return status;
  return kernel;
}

HsaKernel::~HsaKernel() {
  if (executable_.handle != 0) context_->hsa().executable_destroy(executable_);
}

absl::Status HsaKernel::LoadCode(hsa_code_object_reader_t reader) {
  const Library& hsa = context_->hsa();
  const hsa_agent_t agent = context_->agent();
  hsa_status_t code = hsa.executable_create_alt(
      HSA_PROFILE_FULL, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, nullptr, &executable_);
  if (code != HSA_STATUS_SUCCESS) executable_ = {};
  if (code == HSA_STATUS_SUCCESS)
    code = hsa.executable_load_agent_code_object(executable_, agent, reader, nullptr, nullptr);
  if (code == HSA_STATUS_SUCCESS) code = hsa.executable_freeze(executable_, nullptr);
  if (code == HSA_STATUS_SUCCESS)
    code = hsa.executable_get_symbol_by_name(executable_, kDescriptor, &agent, &symbol_);
  if (code == HSA_STATUS_SUCCESS) return absl::OkStatus();
  if (BlamesCode(code))
    return Refused(image_, "has a code object that cannot be loaded: ", ErrorName(hsa, code));
  if (absl::Status lost = context_->Health(); !lost.ok()) return lost;
  return ToStatus(hsa, absl::StrCat("cannot load the kernel ", image_.name), code);
}

absl::Status HsaKernel::CheckSymbol(hsa_executable_symbol_t symbol, const Limits& limits) {
  const Library& hsa = context_->hsa();
  uint32_t argument_bytes = 0;
  uint32_t alignment = 0;
  const struct {
    hsa_executable_symbol_info_t attribute;
    void* value;
  } rows[] = {
      {HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT, &object_},
      {HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_SIZE, &argument_bytes},
      {HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_ALIGNMENT, &alignment},
      {HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE, &group_bytes_},
      {HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE, &private_bytes_},
  };
  for (const auto& row : rows) {
    const hsa_status_t code = hsa.executable_symbol_get_info(symbol, row.attribute, row.value);
    if (code != HSA_STATUS_SUCCESS)
      return ToStatus(hsa, absl::StrCat("cannot inspect the kernel ", image_.name), code);
  }
  if (argument_bytes != this->argument_bytes() || alignment > kBufferAlignmentMin) {
    return Refused(image_, "was compiled for arguments of ", argument_bytes,
                   " bytes at multiples of ", alignment, "; its image has ",
                   this->argument_bytes());
  }
  if (group_bytes_ > limits.shared_bytes_per_block) {
    return Refused(image_, "declares ", group_bytes_, " bytes of shared memory; the device has ",
                   limits.shared_bytes_per_block);
  }
  return absl::OkStatus();
}

}  // namespace kiln::drivers::hsa
