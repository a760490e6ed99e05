// Platforms, devices, programs and kernels. A program is not compiled: its source is searched for a
// few words.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "tests/stand_ins/opencl/objects.h"

namespace {

constexpr int kDevicesMax = 8;
constexpr cl_ulong kMemoryBytes = cl_ulong{1} << 30;
constexpr size_t kThreadsMax = 256;

_cl_platform_id platform;
_cl_device_id gpus[kDevicesMax] = {{CL_DEVICE_TYPE_GPU}, {CL_DEVICE_TYPE_GPU}, {CL_DEVICE_TYPE_GPU},
                                   {CL_DEVICE_TYPE_GPU}, {CL_DEVICE_TYPE_GPU}, {CL_DEVICE_TYPE_GPU},
                                   {CL_DEVICE_TYPE_GPU}, {CL_DEVICE_TYPE_GPU}};
_cl_device_id cpus[kDevicesMax] = {{CL_DEVICE_TYPE_CPU}, {CL_DEVICE_TYPE_CPU}, {CL_DEVICE_TYPE_CPU},
                                   {CL_DEVICE_TYPE_CPU}, {CL_DEVICE_TYPE_CPU}, {CL_DEVICE_TYPE_CPU},
                                   {CL_DEVICE_TYPE_CPU}, {CL_DEVICE_TYPE_CPU}};

// The protocol of OpenCL's queries: returns the size, the value, or both.
cl_int Answer(const void* data, size_t data_size, size_t size, void* value, size_t* size_needed) {
  if (size_needed != nullptr) *size_needed = data_size;
  if (value == nullptr) return CL_SUCCESS;
  if (size < data_size) return CL_INVALID_VALUE;
  std::memcpy(value, data, data_size);
  return CL_SUCCESS;
}
template <typename T>
cl_int AnswerValue(T data, size_t size, void* value, size_t* size_needed) {
  return Answer(&data, sizeof(data), size, value, size_needed);
}
cl_int AnswerText(const std::string& text, size_t size, void* value, size_t* size_needed) {
  return Answer(text.c_str(), text.size() + 1, size, value, size_needed);
}

size_t Occurrences(std::string_view text, std::string_view word) {
  size_t count = 0;
  for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) ++count;
  return count;
}

// The number of parameters of the first kernel, after its attributes.
cl_uint Parameters(std::string_view source) {
  source.remove_prefix(source.find("__kernel"));
  source.remove_prefix(source.find("void "));
  source = source.substr(source.find('(') + 1);
  source = source.substr(0, source.find(')'));
  return source.empty() ? 0 : static_cast<cl_uint>(Occurrences(source, ",") + 1);
}

// The first line of a binary; the source follows.
std::string BinaryHead() { return "binary " + std::to_string(TheControl().binary_form) + "\n"; }

// The injected faults of the compiler.
void FailAt(std::string_view source) {
  const auto has = [source](const char* word) {
    return word != nullptr && Occurrences(source, word) > 0;
  };
  if (has(TheControl().aborts_at)) {
    std::fputs("the stand-in's compiler: a planted fault\n", stderr);
    std::abort();
  }
  for (volatile bool spins = has(TheControl().spins_at); spins;) {
  }
  while (has(TheControl().eats_memory_at)) {
    if ((new std::string(1 << 24, 'x'))->empty()) std::abort();
  }
}

cl_int SetArgument(cl_kernel kernel, cl_uint index, uint64_t value) {
  if (index >= kernel->parameters) return CL_INVALID_ARG_INDEX;
  ++TheControl().arguments_set;
  kernel->values[index] = value;
  kernel->set = std::max<cl_uint>(kernel->set, index + 1);
  return CL_SUCCESS;
}

}  // namespace

kiln::stand_ins::opencl::Control& TheControl() {
  static auto* const control = new kiln::stand_ins::opencl::Control;
  return *control;
}

extern "C" {

kiln::stand_ins::opencl::Control* KilnOpenClStandInControl() { return &TheControl(); }

cl_int clGetPlatformIDs(cl_uint, cl_platform_id* platforms, cl_uint* count) {
  if (!TheControl().has_platform) return -1001;  // CL_PLATFORM_NOT_FOUND_KHR
  *platforms = &platform;
  *count = 1;
  return CL_SUCCESS;
}
cl_int clGetPlatformInfo(cl_platform_id, cl_platform_info, size_t size, void* value,
                         size_t* needed) {
  return AnswerText("stand-in", size, value, needed);
}

void* clGetExtensionFunctionAddressForPlatform(cl_platform_id, const char* name) {
  return TheControl().has_command_buffers ? FindCommandBufferFunction(name) : nullptr;
}

// CPUs first, so that the driver has to reorder them.
cl_int clGetDeviceIDs(cl_platform_id, cl_device_type, cl_uint, cl_device_id* ids, cl_uint* count) {
  *count = 0;
  for (int i = 0; i < TheControl().cpus; ++i) ids[(*count)++] = &cpus[i];
  for (int i = 0; i < TheControl().gpus; ++i) ids[(*count)++] = &gpus[i];
  return *count == 0 ? CL_DEVICE_NOT_FOUND : CL_SUCCESS;
}

cl_int clGetDeviceInfo(cl_device_id id, cl_device_info what, size_t size, void* value,
                       size_t* needed) {
  constexpr cl_device_fp_config kFloats = CL_FP_ROUND_TO_NEAREST | CL_FP_INF_NAN;
  switch (what) {
    case CL_DEVICE_NAME:
      return AnswerText(id->type == CL_DEVICE_TYPE_CPU ? "stand-in CPU" : "stand-in GPU", size,
                        value, needed);
    case CL_DRIVER_VERSION:
      return AnswerText(std::to_string(TheControl().driver_version), size, value, needed);
    case CL_DEVICE_EXTENSIONS:
      return AnswerText(TheControl().has_command_buffers
                            ? "cl_khr_icd cl_khr_command_buffer cl_khr_fp64 "
                            : "cl_khr_icd cl_khr_fp64 ",
                        size, value, needed);
    case CL_DEVICE_PLATFORM:
      return AnswerValue<cl_platform_id>(&platform, size, value, needed);
    case CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR:
      return AnswerValue<cl_device_command_buffer_capabilities_khr>(
          TheControl().command_buffer_capabilities, size, value, needed);
    case CL_DEVICE_COMMAND_BUFFER_REQUIRED_QUEUE_PROPERTIES_KHR:
      return AnswerValue<cl_command_queue_properties>(TheControl().required_queue_properties, size,
                                                      value, needed);
    case CL_DEVICE_TYPE:
      return AnswerValue<cl_device_type>(id->type, size, value, needed);
    case CL_DEVICE_SINGLE_FP_CONFIG:
      return AnswerValue<cl_device_fp_config>(CL_FP_DENORM | CL_FP_FMA | kFloats, size, value,
                                              needed);
    case CL_DEVICE_MAX_COMPUTE_UNITS:
      return AnswerValue<cl_uint>(4, size, value, needed);
    case CL_DEVICE_MAX_CLOCK_FREQUENCY:
      return AnswerValue<cl_uint>(1500, size, value, needed);  // MHz
    case CL_DEVICE_ADDRESS_BITS:
      return AnswerValue<cl_uint>(64, size, value, needed);
    case CL_DEVICE_LOCAL_MEM_SIZE:
      return AnswerValue<cl_ulong>(48 << 10, size, value, needed);
    case CL_DEVICE_GLOBAL_MEM_CACHE_SIZE:
      return AnswerValue<cl_ulong>(4 << 20, size, value, needed);
    case CL_DEVICE_GLOBAL_MEM_SIZE:
      return AnswerValue<cl_ulong>(kMemoryBytes, size, value, needed);
    case CL_DEVICE_MAX_MEM_ALLOC_SIZE:
      return AnswerValue<cl_ulong>(kMemoryBytes / 4, size, value, needed);
    case CL_DEVICE_MAX_WORK_GROUP_SIZE:
      return AnswerValue<size_t>(kThreadsMax, size, value, needed);
    case CL_DEVICE_SVM_CAPABILITIES:
      return AnswerValue<cl_device_svm_capabilities>(
          (TheControl().has_shared_virtual_memory ? CL_DEVICE_SVM_COARSE_GRAIN_BUFFER : 0) |
              (TheControl().reaches_all_memory ? CL_DEVICE_SVM_FINE_GRAIN_SYSTEM : 0),
          size, value, needed);
    case CL_DEVICE_AVAILABLE:
      return AnswerValue<cl_bool>(TheControl().unplugged ? CL_FALSE : CL_TRUE, size, value, needed);
    case CL_DEVICE_COMPILER_AVAILABLE:
    case CL_DEVICE_ENDIAN_LITTLE:
      return AnswerValue<cl_bool>(CL_TRUE, size, value, needed);
    case CL_DEVICE_HOST_UNIFIED_MEMORY:
      return AnswerValue<cl_bool>(TheControl().gpus_share_memory ? CL_TRUE : CL_FALSE, size, value,
                                  needed);
    default:
      return CL_INVALID_VALUE;
  }
}

cl_context clCreateContext(const cl_context_properties*, cl_uint, const cl_device_id*,
                           void (*)(const char*, const void*, size_t, void*), void*, cl_int* code) {
  *code = TheControl().lost ? CL_DEVICE_NOT_AVAILABLE : CL_SUCCESS;
  return TheControl().lost ? nullptr : new _cl_context;
}
cl_int clReleaseContext(cl_context context) { return ReleaseObject(context); }

cl_program clCreateProgramWithSource(cl_context, cl_uint, const char** sources, const size_t* sizes,
                                     cl_int* code) {
  *code = CL_SUCCESS;
  auto* program = new _cl_program;
  program->source.assign(sources[0], sizes[0]);
  return program;
}
cl_int clReleaseProgram(cl_program program) { return ReleaseObject(program); }

cl_program clCreateProgramWithBinary(cl_context, cl_uint, const cl_device_id*, const size_t* sizes,
                                     const unsigned char** binaries, cl_int* taken, cl_int* code) {
  const std::string_view binary(reinterpret_cast<const char*>(binaries[0]), sizes[0]);
  const std::string head = BinaryHead();
  *taken = *code = binary.substr(0, head.size()) == head ? CL_SUCCESS : CL_INVALID_BINARY;
  if (*code != CL_SUCCESS) return nullptr;
  auto* program = new _cl_program;
  program->source = binary.substr(head.size());
  program->is_binary = true;
  return program;
}

// "#error" is the only error that it detects.
cl_int clBuildProgram(cl_program program, cl_uint, const cl_device_id*, const char*,
                      void (*)(cl_program, void*), void*) {
  ++(program->is_binary ? TheControl().binaries_built : TheControl().sources_built);
  if (!program->is_binary) FailAt(program->source);
  return Occurrences(program->source, "#error") > 0 ? CL_BUILD_PROGRAM_FAILURE : CL_SUCCESS;
}
// Much longer than useful, as with real compilers.
cl_int clGetProgramBuildInfo(cl_program, cl_device_id, cl_program_build_info, size_t size,
                             void* value, size_t* needed) {
  std::string log;
  for (int line = 1; line <= 1000; ++line) log += "line " + std::to_string(line) + ": wrong\n";
  return AnswerText(log, size, value, needed);
}
cl_int clGetProgramInfo(cl_program program, cl_program_info what, size_t size, void* value,
                        size_t* needed) {
  if (what == CL_PROGRAM_KERNEL_NAMES) return AnswerText("any_name", size, value, needed);
  const std::string binary = TheControl().gives_binaries ? BinaryHead() + program->source : "";
  if (what == CL_PROGRAM_BINARY_SIZES) return AnswerValue(binary.size(), size, value, needed);
  if (what == CL_PROGRAM_BINARIES) {
    std::memcpy(*static_cast<char**>(value), binary.data(), binary.size());
    return CL_SUCCESS;
  }
  return AnswerValue<size_t>(Occurrences(program->source, "__kernel"), size, value, needed);
}

cl_kernel clCreateKernel(cl_program program, const char*, cl_int* code) {
  *code = CL_SUCCESS;
  auto* kernel = new _cl_kernel;
  kernel->parameters = Parameters(program->source);
  kernel->values.resize(kernel->parameters);
  ++TheControl().kernels_made;
  return kernel;
}
cl_int clReleaseKernel(cl_kernel kernel) { return ReleaseObject(kernel); }
cl_int clSetKernelArgSVMPointer(cl_kernel kernel, cl_uint index, const void* value) {
  return SetArgument(kernel, index, reinterpret_cast<uint64_t>(value));
}
cl_int clSetKernelArg(cl_kernel kernel, cl_uint index, size_t size, const void* value) {
  if (value == nullptr) return CL_INVALID_ARG_VALUE;
  if (size != sizeof(cl_ulong)) return CL_INVALID_ARG_SIZE;
  uint64_t number = 0;
  std::memcpy(&number, value, sizeof(number));
  return SetArgument(kernel, index, number);
}
cl_int clSetKernelExecInfo(cl_kernel kernel, cl_kernel_exec_info what, size_t size,
                           const void* value) {
  if (what != CL_KERNEL_EXEC_INFO_SVM_PTRS || value == nullptr) return CL_INVALID_VALUE;
  ++TheControl().memory_named;
  if (size == 0 || size % sizeof(void*) != 0) return CL_INVALID_VALUE;
  const auto* pointers = static_cast<const void* const*>(value);
  kernel->named.assign(pointers, pointers + size / sizeof(void*));
  return CL_SUCCESS;
}
cl_int clGetKernelInfo(cl_kernel kernel, cl_kernel_info, size_t size, void* value, size_t* needed) {
  return AnswerValue<cl_uint>(kernel->parameters, size, value, needed);
}
cl_int clGetKernelWorkGroupInfo(cl_kernel, cl_device_id, cl_kernel_work_group_info what,
                                size_t size, void* value, size_t* needed) {
  if (what == CL_KERNEL_LOCAL_MEM_SIZE) return AnswerValue<cl_ulong>(0, size, value, needed);
  return AnswerValue<size_t>(kThreadsMax / 2, size, value, needed);
}

}  // extern "C"
