#include "compiler/codegen/opencl_c/testing/runner.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <utility>

#include "compiler/ir/str_cat.h"

namespace kiln::codegen {

// The parts of CL/cl.h that are used, so that the tests need no header to build.
using Handle = void*;
using Info = uint32_t;
struct OpenClApi {
  int32_t (*GetPlatformIDs)(uint32_t, Handle*, uint32_t*);
  int32_t (*GetPlatformInfo)(Handle, Info, size_t, void*, size_t*);
  int32_t (*GetDeviceIDs)(Handle, uint64_t, uint32_t, Handle*, uint32_t*);
  int32_t (*GetDeviceInfo)(Handle, Info, size_t, void*, size_t*);
  Handle (*CreateContext)(const void*, uint32_t, const Handle*, void*, void*, int32_t*);
  Handle (*CreateCommandQueue)(Handle, Handle, uint64_t, int32_t*);
  Handle (*CreateProgramWithSource)(Handle, uint32_t, const char**, const size_t*, int32_t*);
  int32_t (*BuildProgram)(Handle, uint32_t, const Handle*, const char*, void*, void*);
  int32_t (*GetProgramBuildInfo)(Handle, Handle, Info, size_t, void*, size_t*);
  Handle (*CreateKernel)(Handle, const char*, int32_t*);
  Handle (*CreateBuffer)(Handle, uint64_t, size_t, void*, int32_t*);
  int32_t (*SetKernelArg)(Handle, uint32_t, size_t, const void*);
  int32_t (*EnqueueNDRangeKernel)(Handle, Handle, uint32_t, const size_t*, const size_t*,
                                  const size_t*, uint32_t, const Handle*, Handle*);
  int32_t (*EnqueueReadBuffer)(Handle, Handle, uint32_t, size_t, size_t, void*, uint32_t,
                               const Handle*, Handle*);
  int32_t (*ReleaseMemObject)(Handle);
  int32_t (*ReleaseKernel)(Handle);
  int32_t (*ReleaseProgram)(Handle);
  int32_t (*ReleaseCommandQueue)(Handle);
  int32_t (*ReleaseContext)(Handle);
};

namespace {

constexpr uint64_t kDeviceTypeAll = 0xFFFFFFFF;
constexpr Info kDeviceName = 0x102B, kDeviceVersion = 0x102F, kDoubleConfig = 0x1032;
constexpr Info kBuildLog = 0x1183;
constexpr Info kPlatformName = 0x0902;
constexpr uint32_t kPlatformsMax = 16;
constexpr uint64_t kReadWriteCopy = (1 << 0) | (1 << 5);
constexpr uint32_t kBlocking = 1;

template <typename Function>
bool Find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  return function != nullptr;
}

bool FindAll(void* library, OpenClApi& api) {
  return Find(library, "clGetPlatformIDs", api.GetPlatformIDs) &&
         Find(library, "clGetPlatformInfo", api.GetPlatformInfo) &&
         Find(library, "clGetDeviceIDs", api.GetDeviceIDs) &&
         Find(library, "clGetDeviceInfo", api.GetDeviceInfo) &&
         Find(library, "clCreateContext", api.CreateContext) &&
         Find(library, "clCreateCommandQueue", api.CreateCommandQueue) &&
         Find(library, "clCreateProgramWithSource", api.CreateProgramWithSource) &&
         Find(library, "clBuildProgram", api.BuildProgram) &&
         Find(library, "clGetProgramBuildInfo", api.GetProgramBuildInfo) &&
         Find(library, "clCreateKernel", api.CreateKernel) &&
         Find(library, "clCreateBuffer", api.CreateBuffer) &&
         Find(library, "clSetKernelArg", api.SetKernelArg) &&
         Find(library, "clEnqueueNDRangeKernel", api.EnqueueNDRangeKernel) &&
         Find(library, "clEnqueueReadBuffer", api.EnqueueReadBuffer) &&
         Find(library, "clReleaseMemObject", api.ReleaseMemObject) &&
         Find(library, "clReleaseKernel", api.ReleaseKernel) &&
         Find(library, "clReleaseProgram", api.ReleaseProgram) &&
         Find(library, "clReleaseCommandQueue", api.ReleaseCommandQueue) &&
         Find(library, "clReleaseContext", api.ReleaseContext);
}

absl::Status Failed(const char* call, int32_t error) {
  return absl::InternalError(StrCat(call, " failed: ", error));
}

// Bytes after a buffer, to detect writes past its end.
constexpr size_t kSlack = 64;
constexpr uint8_t kUntouched = 0xa5;

// Releases its handles in its destructor.
class Releases {
 public:
  ~Releases() {
    for (auto it = list_.rbegin(); it != list_.rend(); ++it) it->first(it->second);
  }
  void Add(int32_t (*release)(Handle), Handle handle) { list_.emplace_back(release, handle); }

 private:
  std::vector<std::pair<int32_t (*)(Handle), Handle>> list_;
};

}  // namespace

struct OpenClRunner::Impl {
  OpenClApi api;
  std::string platform_name;
  Handle device = nullptr;
  Handle context = nullptr;
  Handle queue = nullptr;

  std::string Text(Info info) const {
    char text[512] = "";
    api.GetDeviceInfo(device, info, sizeof(text) - 1, text, nullptr);
    return text;
  }

  absl::StatusOr<Handle> FindPlatform(const std::string& name) {
    Handle platforms[kPlatformsMax];
    uint32_t num_platforms = 0;
    if (api.GetPlatformIDs(kPlatformsMax, platforms, &num_platforms) != 0)
      return absl::NotFoundError("libOpenCL.so.1 knows no platform");
    for (uint32_t i = 0; i < std::min(num_platforms, kPlatformsMax); ++i) {
      char text[512] = "";
      api.GetPlatformInfo(platforms[i], kPlatformName, sizeof(text) - 1, text, nullptr);
      platform_name = text;
      if (platform_name.find(name) != std::string::npos) return platforms[i];
    }
    return absl::NotFoundError(StrCat("libOpenCL.so.1 knows no platform called ", name));
  }

  absl::StatusOr<Handle> Build(const std::string& source) const {
    const char* text = source.c_str();
    int32_t error = 0;
    Handle program = api.CreateProgramWithSource(context, 1, &text, nullptr, &error);
    if (program == nullptr) return Failed("clCreateProgramWithSource", error);
    // As in the driver (drivers/opencl/device_query.cc): some optimized kernels are wrong there.
    const bool optimizes = platform_name.find("Intel") == std::string::npos;
    const std::string options = StrCat(kOpenClBuildOptions, optimizes ? "" : " -cl-opt-disable");
    error = api.BuildProgram(program, 1, &device, options.c_str(), nullptr, nullptr);
    if (error == 0) return program;
    size_t size = 0;
    api.GetProgramBuildInfo(program, device, kBuildLog, 0, nullptr, &size);
    std::string log(size, ' ');
    api.GetProgramBuildInfo(program, device, kBuildLog, size, log.data(), nullptr);
    api.ReleaseProgram(program);
    return absl::InternalError(StrCat("clBuildProgram failed: ", error, "\n", log, "\n", source));
  }

  absl::StatusOr<Handle> MakeBuffer(const std::vector<uint8_t>& bytes) const {
    std::vector<uint8_t> content = bytes;
    content.resize(bytes.size() + kSlack, kUntouched);
    int32_t error = 0;
    Handle buffer =
        api.CreateBuffer(context, kReadWriteCopy, content.size(), content.data(), &error);
    if (buffer == nullptr) return Failed("clCreateBuffer", error);
    return buffer;
  }

  absl::Status ReadBuffer(Handle buffer, size_t number, std::vector<uint8_t>* bytes) const {
    std::vector<uint8_t> content(bytes->size() + kSlack);
    const int32_t error = api.EnqueueReadBuffer(queue, buffer, kBlocking, 0, content.size(),
                                                content.data(), 0, nullptr, nullptr);
    if (error != 0) return Failed("clEnqueueReadBuffer", error);
    const auto end = content.begin() + static_cast<std::ptrdiff_t>(bytes->size());
    if (std::any_of(end, content.end(), [](uint8_t byte) { return byte != kUntouched; }))
      return absl::InternalError(StrCat("wrote behind argument ", number));
    std::copy(content.begin(), end, bytes->begin());
    return absl::OkStatus();
  }
};

OpenClRunner::OpenClRunner(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

OpenClRunner::~OpenClRunner() {
  if (impl_->queue != nullptr) impl_->api.ReleaseCommandQueue(impl_->queue);
  if (impl_->context != nullptr) impl_->api.ReleaseContext(impl_->context);
}

absl::StatusOr<std::unique_ptr<OpenClRunner>> OpenClRunner::Open(const std::string& platform_name) {
  // Without this PoCL would keep every kernel in the home folder.
  setenv("POCL_KERNEL_CACHE", "0", /*overwrite=*/0);
  // Never closed: PoCL's threads outlive it.
  void* library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return absl::NotFoundError(StrCat("no OpenCL: ", dlerror()));
  auto impl = std::make_unique<Impl>();
  if (!FindAll(library, impl->api)) return absl::NotFoundError("libOpenCL.so.1 is incomplete");
  const auto platform = impl->FindPlatform(platform_name);
  if (!platform.ok()) return platform.status();
  if (impl->api.GetDeviceIDs(*platform, kDeviceTypeAll, 1, &impl->device, nullptr) != 0)
    return absl::NotFoundError(StrCat(impl->platform_name, " has no device"));
  int32_t error = 0;
  impl->context = impl->api.CreateContext(nullptr, 1, &impl->device, nullptr, nullptr, &error);
  if (impl->context == nullptr) return Failed("clCreateContext", error);
  auto runner = std::unique_ptr<OpenClRunner>(new OpenClRunner(std::move(impl)));
  Impl& made = *runner->impl_;
  made.queue = made.api.CreateCommandQueue(made.context, made.device, 0, &error);
  if (made.queue == nullptr) return Failed("clCreateCommandQueue", error);
  return runner;
}

std::string OpenClRunner::DeviceName() const {
  return StrCat(impl_->Text(kDeviceVersion), ", ", impl_->Text(kDeviceName), ", ",
                impl_->platform_name);
}

bool OpenClRunner::HasFloat64() const {
  uint64_t doubles = 0;
  impl_->api.GetDeviceInfo(impl_->device, kDoubleConfig, sizeof(doubles), &doubles, nullptr);
  return doubles != 0;
}

absl::Status OpenClRunner::Run(const std::string& source, int64_t tasks, int threads,
                               absl::Span<std::vector<uint8_t>* const> arguments) {
  const OpenClApi& api = impl_->api;
  Releases releases;
  auto program = impl_->Build(source);
  if (!program.ok()) return program.status();
  releases.Add(api.ReleaseProgram, *program);
  int32_t error = 0;
  Handle kernel = api.CreateKernel(*program, kOpenClEntry, &error);
  if (kernel == nullptr) return Failed("clCreateKernel", error);
  releases.Add(api.ReleaseKernel, kernel);
  std::vector<Handle> buffers;
  for (size_t i = 0; i < arguments.size(); ++i) {
    auto buffer = impl_->MakeBuffer(*arguments[i]);
    if (!buffer.ok()) return buffer.status();
    releases.Add(api.ReleaseMemObject, *buffer);
    buffers.push_back(*buffer);
    error = api.SetKernelArg(kernel, static_cast<uint32_t>(i), sizeof(Handle), &buffers.back());
    if (error != 0) return Failed("clSetKernelArg", error);
  }
  const auto local = static_cast<size_t>(threads);
  const size_t global =
      threads > 1 ? static_cast<size_t>(tasks) * local : static_cast<size_t>(tasks) + 1;
  error = api.EnqueueNDRangeKernel(impl_->queue, kernel, 1, nullptr, &global, &local, 0, nullptr,
                                   nullptr);
  if (error != 0) return Failed("clEnqueueNDRangeKernel", error);
  for (size_t i = 0; i < arguments.size(); ++i) {
    absl::Status status = impl_->ReadBuffer(buffers[i], i, arguments[i]);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace kiln::codegen
