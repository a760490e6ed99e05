#include "tests/stand_ins/level_zero/opencl.h"

#include <dlfcn.h>

#include <algorithm>
#include <mutex>

namespace kiln::stand_ins::level_zero {

// The parts of CL/cl.h that are used.
using Handle = void*;
struct OpenClApi {
  int32_t (*GetPlatformIDs)(uint32_t, Handle*, uint32_t*);
  int32_t (*GetDeviceIDs)(Handle, uint64_t, uint32_t, Handle*, uint32_t*);
  int32_t (*GetDeviceInfo)(Handle, uint32_t, size_t, void*, size_t*);
  Handle (*CreateContext)(const void*, uint32_t, const Handle*, void*, void*, int32_t*);
  Handle (*CreateCommandQueueWithProperties)(Handle, Handle, const uint64_t*, int32_t*);
  Handle (*CreateProgramWithIL)(Handle, const void*, size_t, int32_t*);
  int32_t (*BuildProgram)(Handle, uint32_t, const Handle*, const char*, void*, void*);
  int32_t (*GetProgramBuildInfo)(Handle, Handle, uint32_t, size_t, void*, size_t*);
  Handle (*CreateKernel)(Handle, const char*, int32_t*);
  int32_t (*SetKernelArg)(Handle, uint32_t, size_t, const void*);
  int32_t (*SetKernelArgSVMPointer)(Handle, uint32_t, const void*);
  int32_t (*EnqueueNDRangeKernel)(Handle, Handle, uint32_t, const size_t*, const size_t*,
                                  const size_t*, uint32_t, const Handle*, Handle*);
  int32_t (*Finish)(Handle);
  int32_t (*ReleaseKernel)(Handle);
  int32_t (*ReleaseProgram)(Handle);
};

namespace {

constexpr uint64_t kDeviceTypeAll = 0xFFFFFFFF;
constexpr uint32_t kIlVersion = 0x105B, kSvmCapabilities = 0x1053, kBuildLog = 0x1183;
constexpr uint64_t kFineGrainSystem = 1 << 2;
constexpr uint32_t kPlatformsMax = 16;

class Program : public OpenClProgram {
 public:
  Program(const OpenClApi& cl, Handle queue, Handle program)
      : cl_(cl), queue_(queue), program_(program) {}
  ~Program() override { cl_.ReleaseProgram(program_); }

  std::string Run(const std::string& name, const std::vector<OpenClArgument>& arguments,
                  size_t groups, size_t group_size) override {
    int32_t code = 0;
    Handle kernel = cl_.CreateKernel(program_, name.c_str(), &code);
    for (uint32_t i = 0; i < arguments.size() && code == 0; ++i) {
      const OpenClArgument& argument = arguments[i];
      if (argument.is_pointer) {
        void* const memory = *reinterpret_cast<void* const*>(argument.bytes.data());
        code = cl_.SetKernelArgSVMPointer(kernel, i, memory);
      } else {
        code = cl_.SetKernelArg(kernel, i, argument.bytes.size(), argument.bytes.data());
      }
    }
    const size_t threads = groups * group_size;
    if (code == 0) {
      code = cl_.EnqueueNDRangeKernel(queue_, kernel, 1, nullptr, &threads, &group_size, 0, nullptr,
                                      nullptr);
    }
    if (code == 0) code = cl_.Finish(queue_);
    if (kernel != nullptr) cl_.ReleaseKernel(kernel);
    return code == 0 ? "" : "OpenCL runs the kernel " + name + " with " + std::to_string(code);
  }

 private:
  const OpenClApi& cl_;
  const Handle queue_;
  const Handle program_;
};

class Runtime : public OpenClRuntime {
 public:
  Runtime(const OpenClApi& cl, Handle device, Handle context, Handle queue)
      : cl_(cl), device_(device), context_(context), queue_(queue) {}

  std::unique_ptr<OpenClProgram> Build(const std::string& spirv, const std::string& options,
                                       std::string* log) override {
    int32_t code = 0;
    Handle program = cl_.CreateProgramWithIL(context_, spirv.data(), spirv.size(), &code);
    if (code != 0) {
      *log = "clCreateProgramWithIL gives " + std::to_string(code);
      return nullptr;
    }
    const std::string all = "-cl-opt-disable " + options;
    code = cl_.BuildProgram(program, 1, &device_, all.c_str(), nullptr, nullptr);
    if (code == 0) return std::make_unique<Program>(cl_, queue_, program);
    *log = "clBuildProgram gives " + std::to_string(code) + ": ";
    size_t size = 0;
    cl_.GetProgramBuildInfo(program, device_, kBuildLog, 0, nullptr, &size);
    std::string said(size, '\0');
    cl_.GetProgramBuildInfo(program, device_, kBuildLog, size, said.data(), nullptr);
    *log += said;
    cl_.ReleaseProgram(program);
    return nullptr;
  }

 private:
  const OpenClApi& cl_;
  const Handle device_;
  const Handle context_;
  const Handle queue_;
};

template <typename Function>
bool Find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  return function != nullptr;
}

bool FindAll(void* library, OpenClApi& cl) {
  return Find(library, "clGetPlatformIDs", cl.GetPlatformIDs) &&
         Find(library, "clGetDeviceIDs", cl.GetDeviceIDs) &&
         Find(library, "clGetDeviceInfo", cl.GetDeviceInfo) &&
         Find(library, "clCreateContext", cl.CreateContext) &&
         Find(library, "clCreateCommandQueueWithProperties", cl.CreateCommandQueueWithProperties) &&
         Find(library, "clCreateProgramWithIL", cl.CreateProgramWithIL) &&
         Find(library, "clBuildProgram", cl.BuildProgram) &&
         Find(library, "clGetProgramBuildInfo", cl.GetProgramBuildInfo) &&
         Find(library, "clCreateKernel", cl.CreateKernel) &&
         Find(library, "clSetKernelArg", cl.SetKernelArg) &&
         Find(library, "clSetKernelArgSVMPointer", cl.SetKernelArgSVMPointer) &&
         Find(library, "clEnqueueNDRangeKernel", cl.EnqueueNDRangeKernel) &&
         Find(library, "clFinish", cl.Finish) &&
         Find(library, "clReleaseKernel", cl.ReleaseKernel) &&
         Find(library, "clReleaseProgram", cl.ReleaseProgram);
}

std::string TextOf(const OpenClApi& cl, Handle device, uint32_t what) {
  char text[256] = {};
  return cl.GetDeviceInfo(device, what, sizeof(text) - 1, text, nullptr) == 0 ? text : "";
}

// Any device that takes SPIR-V and can access all host memory.
std::unique_ptr<Runtime> Open(const OpenClApi& cl) {
  Handle platforms[kPlatformsMax];
  uint32_t count = 0;
  if (cl.GetPlatformIDs(kPlatformsMax, platforms, &count) != 0) return nullptr;
  for (uint32_t i = 0; i < std::min(count, kPlatformsMax); ++i) {
    Handle device = nullptr;
    uint32_t devices = 0;
    if (cl.GetDeviceIDs(platforms[i], kDeviceTypeAll, 1, &device, &devices) != 0 || devices == 0)
      continue;
    if (TextOf(cl, device, kIlVersion).find("SPIR-V_1.2") == std::string::npos) continue;
    uint64_t svm = 0;
    cl.GetDeviceInfo(device, kSvmCapabilities, sizeof(svm), &svm, nullptr);
    if ((svm & kFineGrainSystem) == 0) continue;
    int32_t code = 0;
    Handle context = cl.CreateContext(nullptr, 1, &device, nullptr, nullptr, &code);
    if (code != 0) continue;
    Handle queue = cl.CreateCommandQueueWithProperties(context, device, nullptr, &code);
    if (code == 0) return std::make_unique<Runtime>(cl, device, context, queue);
  }
  return nullptr;
}

}  // namespace

OpenClRuntime* FindOpenClRuntime(std::string* why_none) {
  static std::mutex mutex;
  static OpenClRuntime* found = nullptr;
  const std::lock_guard<std::mutex> lock(mutex);
  if (found != nullptr) return found;
  static OpenClApi* const cl = new OpenClApi;
  void* library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr || !FindAll(library, *cl)) {
    *why_none = "there is no OpenCL 2.1 loader";
    return nullptr;
  }
  // Lives as long as the process.
  found = Open(*cl).release();
  if (found == nullptr)
    *why_none =
        "no OpenCL device takes SPIR-V 1.2 and reaches the host's memory; tests/intel_opencl "
        "fetches a runtime that has one";
  return found;
}

}  // namespace kiln::stand_ins::level_zero
