#include "drivers/opencl/kernel.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "drivers/common/check.h"
#include "drivers/opencl/error.h"

namespace kiln::drivers::opencl {
namespace {

// Only the first errors matter.
constexpr size_t kLogBytesMax = 2000;

// If a kernel with blocks of at most this many threads fails to build, registers are not the cause.
constexpr int kBlockThreadsSure = 64;

// A device that is lost or out of memory loads nothing; other errors are about this binary.
absl::Status BinaryRefused(Context& context, const KernelImage& image, cl_int code) {
  const std::string what = absl::StrCat("the binary of the kernel ", image.name, " was refused");
  const absl::Status failure = context.Failure(what, code);
  if (absl::IsUnavailable(failure) || absl::IsResourceExhausted(failure)) return failure;
  return FinishedRefused(failure.message());
}

}  // namespace

absl::StatusOr<std::unique_ptr<OpenClKernel>> OpenClKernel::Load(std::shared_ptr<Context> context,
                                                                 const DeviceFacts& facts,
                                                                 const KernelImage& image) {
  if (absl::Status status = CheckBlockImage(image, facts.target, "OpenCL C"); !status.ok())
    return status;
  if (image.grid_size > std::numeric_limits<int64_t>::max() / image.block_size)
    return RefusedKernel(image, "has a grid of ", image.grid_size);
  std::unique_ptr<OpenClKernel> kernel(new OpenClKernel(std::move(context), image));
  absl::Status built =
      image.finished.empty() ? kernel->Build(facts) : kernel->BuildFromBinary(facts);
  if (!built.ok()) return built;
  if (absl::Status status = kernel->FindFunction(); !status.ok()) return status;
  if (absl::Status status = kernel->CheckFunction(facts); !status.ok()) return status;
  return kernel;
}

absl::Status OpenClKernel::Build(const DeviceFacts& facts) {
  const Library& cl = context_->cl();
  const char* source = image().code.data();
  const size_t size = image().code.size();
  cl_int code = CL_SUCCESS;
  cl_program program = cl.CreateProgramWithSource(context_->get(), 1, &source, &size, &code);
  if (code != CL_SUCCESS)
    return context_->Failure(absl::StrCat("cannot load the kernel ", image().name), code);
  program_ = Handle<cl_program>(program, cl.ReleaseProgram);
  cl_device_id device = context_->device();
  code = cl.BuildProgram(program, 1, &device, facts.build_options.c_str(), nullptr, nullptr);
  if (code == CL_BUILD_PROGRAM_FAILURE) {
    const std::string why =
        absl::StrCat("the kernel ", image().name, " cannot be compiled:\n", BuildLog());
    // The source requires its block size, which may need more registers than there are.
    if (image().block_size > kBlockThreadsSure) return BlocksTooLarge(why, kBlockThreadsSure);
    return absl::InvalidArgumentError(why);
  }
  if (code != CL_SUCCESS)
    return context_->Failure(absl::StrCat("cannot build the kernel ", image().name), code);
  return absl::OkStatus();
}

absl::Status OpenClKernel::BuildFromBinary(const DeviceFacts& facts) {
  const Library& cl = context_->cl();
  cl_device_id device = context_->device();
  const size_t size = image().finished.size();
  const auto* binary = reinterpret_cast<const unsigned char*>(image().finished.data());
  cl_int taken = CL_SUCCESS;
  cl_int code = CL_SUCCESS;
  cl_program program =
      cl.CreateProgramWithBinary(context_->get(), 1, &device, &size, &binary, &taken, &code);
  program_ = Handle<cl_program>(program, cl.ReleaseProgram);
  if (code == CL_SUCCESS) code = taken;
  // OpenCL requires that binaries are built, too: this links them or, if they are text, assembles
  // them.
  if (code == CL_SUCCESS)
    code = cl.BuildProgram(program, 1, &device, facts.build_options.c_str(), nullptr, nullptr);
  return code == CL_SUCCESS ? absl::OkStatus() : BinaryRefused(*context_, image(), code);
}

absl::StatusOr<std::string> OpenClKernel::Binary() const {
  const Library& cl = context_->cl();
  size_t size = 0;
  cl_int code =
      cl.GetProgramInfo(program_.get(), CL_PROGRAM_BINARY_SIZES, sizeof(size), &size, nullptr);
  if (code == CL_SUCCESS && size == 0)
    return absl::UnimplementedError("the device cannot return binaries");
  std::string binary(size, '\0');
  char* to = binary.data();
  // Some implementations compile again for this, and may fail.
  if (code == CL_SUCCESS)
    code = cl.GetProgramInfo(program_.get(), CL_PROGRAM_BINARIES, sizeof(to), &to, nullptr);
  if (code == CL_SUCCESS) return binary;
  return context_->Failure(absl::StrCat("cannot get the binary of the kernel ", image().name),
                           code);
}

std::string OpenClKernel::BuildLog() const {
  const Library& cl = context_->cl();
  size_t size = 0;
  if (cl.GetProgramBuildInfo(program_.get(), context_->device(), CL_PROGRAM_BUILD_LOG, 0, nullptr,
                             &size) != CL_SUCCESS ||
      size == 0) {
    return "the device's compiler printed no message";
  }
  std::string log(size, '\0');
  cl.GetProgramBuildInfo(program_.get(), context_->device(), CL_PROGRAM_BUILD_LOG, size, log.data(),
                         nullptr);
  log.resize(log.find_last_not_of('\0') + 1);
  absl::StripAsciiWhitespace(&log);
  if (log.size() > kLogBytesMax) log = absl::StrCat(log.substr(0, kLogBytesMax), "\n…");
  return log;
}

absl::Status OpenClKernel::FindFunction() {
  const Library& cl = context_->cl();
  size_t functions = 0;
  cl_int code = cl.GetProgramInfo(program_.get(), CL_PROGRAM_NUM_KERNELS, sizeof(functions),
                                  &functions, nullptr);
  if (code != CL_SUCCESS)
    return context_->Failure(absl::StrCat("cannot inspect the kernel ", image().name), code);
  if (functions != 1)
    return RefusedKernel(image(), "has ", functions, " functions marked __kernel; one is needed");
  size_t size = 0;
  cl.GetProgramInfo(program_.get(), CL_PROGRAM_KERNEL_NAMES, 0, nullptr, &size);
  function_name_.resize(size);
  cl.GetProgramInfo(program_.get(), CL_PROGRAM_KERNEL_NAMES, size, function_name_.data(), nullptr);
  function_name_.resize(function_name_.find_last_not_of('\0') + 1);
  return absl::OkStatus();
}

absl::Status OpenClKernel::CheckFunction(const DeviceFacts& facts) const {
  const auto function = MakeFunction();
  if (!function.ok()) return function.status();
  const Library& cl = context_->cl();
  cl_uint parameters = 0;
  cl.GetKernelInfo(function->get(), CL_KERNEL_NUM_ARGS, sizeof(parameters), &parameters, nullptr);
  if (parameters != static_cast<cl_uint>(image().num_parameters())) {
    return RefusedKernel(image(), "declares ", image().num_arguments, " arguments",
                         image().takes_slot_table ? " and a slot table" : "",
                         image().runs_parts ? " and its first grid point" : "",
                         ", but its function takes ", parameters);
  }
  // Less than the device's maximum if a thread needs many registers.
  size_t block_size_max = 0;
  cl.GetKernelWorkGroupInfo(function->get(), context_->device(), CL_KERNEL_WORK_GROUP_SIZE,
                            sizeof(block_size_max), &block_size_max, nullptr);
  if (static_cast<size_t>(image().block_size) > block_size_max) {
    return BlocksTooLarge(
        absl::StrCat("the kernel ", image().name, " has blocks of ", image().block_size,
                     " threads; in its built form the device allows ", block_size_max),
        static_cast<int>(block_size_max));
  }
  cl_ulong shared_bytes = 0;
  cl.GetKernelWorkGroupInfo(function->get(), context_->device(), CL_KERNEL_LOCAL_MEM_SIZE,
                            sizeof(shared_bytes), &shared_bytes, nullptr);
  if (shared_bytes > static_cast<cl_ulong>(facts.target.limits.shared_bytes_per_block)) {
    return RefusedKernel(image(), "declares ", shared_bytes,
                         " bytes of __local memory; the device has ",
                         facts.target.limits.shared_bytes_per_block);
  }
  return absl::OkStatus();
}

absl::StatusOr<Handle<cl_kernel>> OpenClKernel::MakeFunction() const {
  cl_int code = CL_SUCCESS;
  cl_kernel function = context_->cl().CreateKernel(program_.get(), function_name_.c_str(), &code);
  if (code != CL_SUCCESS)
    return context_->Failure(absl::StrCat("cannot make the kernel ", image().name), code);
  return Handle<cl_kernel>(function, context_->cl().ReleaseKernel);
}

}  // namespace kiln::drivers::opencl
