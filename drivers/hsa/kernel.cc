#include "drivers/hsa/kernel.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "drivers/common/check.h"
#include "drivers/hsa/error.h"

namespace kiln::drivers::hsa {
namespace {

constexpr char kDescriptor[] = "kernel.kd";

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
                                                           const KernelImage& image) {
  const Target& target = context->facts().target;
  if (absl::Status status = CheckBlockImage(image, target, "a code object"); !status.ok())
    return status;
  // The grid is counted in threads, in 32 bits.
  if (image.grid_size > std::numeric_limits<uint32_t>::max() / image.block_size) {
    return RefusedKernel(image, "has a grid of ", image.grid_size, " blocks of ", image.block_size,
                         " threads; at most 2^32 - 1 threads are allowed");
  }
  std::unique_ptr<HsaKernel> kernel(new HsaKernel(std::move(context), image));
  const Library& hsa = kernel->context_->hsa();
  hsa_code_object_reader_t reader = {};
  const hsa_status_t code = hsa.code_object_reader_create_from_memory(
      kernel->image().code.data(), kernel->image().code.size(), &reader);
  if (code != HSA_STATUS_SUCCESS)
    return RefusedKernel(image, "has a code object that cannot be read: ", ErrorName(hsa, code));
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
    return RefusedKernel(image(),
                         "has a code object that cannot be loaded: ", ErrorName(hsa, code));
  return context_->Failure(absl::StrCat("cannot load the kernel ", image().name), code);
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
      return ToStatus(hsa, absl::StrCat("cannot inspect the kernel ", image().name), code);
  }
  if (argument_bytes != this->argument_bytes() || alignment > kBufferAlignmentMin) {
    return RefusedKernel(image(), "was compiled for arguments of ", argument_bytes,
                         " bytes at multiples of ", alignment, "; its image has ",
                         this->argument_bytes());
  }
  if (group_bytes_ > limits.shared_bytes_per_block) {
    return RefusedKernel(image(), "declares ", group_bytes_,
                         " bytes of shared memory; the device has ", limits.shared_bytes_per_block);
  }
  return absl::OkStatus();
}

}  // namespace kiln::drivers::hsa
