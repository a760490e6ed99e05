// The stand-in as a driver opens it: functions are looked up by name.
#ifndef KILN_TESTS_STAND_INS_CUDA_TESTING_LIBRARY_H_
#define KILN_TESTS_STAND_INS_CUDA_TESTING_LIBRARY_H_

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "drivers/cuda/api.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/stand_ins/cuda/control.h"
#include "tests/stand_ins/testing/library_test.h"

namespace kiln::drivers::cuda {

// KILN_CUDA(cuInit)(0) calls the library's function.
#define KILN_CUDA(name) (*Find<decltype(name)>(#name))
#define KILN_EXPECT_CUDA(call) EXPECT_EQ(call, CUDA_SUCCESS) << Message()

class CudaStandInTest : public stand_ins::LibraryTest<stand_ins::cuda::Control> {
 protected:
  void SetUp() override {
    OpenLibrary(KILN_CUDA_STAND_IN, "KilnCudaStandInControl", "KilnCudaStandInMessage");
    ResetControl();
    KILN_EXPECT_CUDA(KILN_CUDA(cuInit)(0));
    KILN_EXPECT_CUDA(KILN_CUDA(cuDevicePrimaryCtxRetain)(&context_, 0));
    KILN_EXPECT_CUDA(KILN_CUDA(cuCtxSetCurrent)(context_));
  }
  void TearDown() override {
    control_->lost = 0;
    KILN_CUDA(cuDevicePrimaryCtxReset_v2)(0);
    KILN_EXPECT_CUDA(KILN_CUDA(cuDevicePrimaryCtxRelease_v2)(0));
    KILN_CUDA(cuCtxSetCurrent)(nullptr);
    EXPECT_EQ(control_->objects, 0);
  }

  CUdeviceptr Allocate(size_t bytes) {
    CUdeviceptr address = 0;
    KILN_EXPECT_CUDA(KILN_CUDA(cuMemAlloc_v2)(&address, bytes));
    return address;
  }
  CUstream Stream() {
    CUstream stream = nullptr;
    KILN_EXPECT_CUDA(KILN_CUDA(cuStreamCreateWithPriority)(&stream, CU_STREAM_NON_BLOCKING, 0));
    return stream;
  }
  CUevent Event() {
    CUevent event = nullptr;
    KILN_EXPECT_CUDA(KILN_CUDA(cuEventCreate)(&event, CU_EVENT_DEFAULT));
    return event;
  }
  void Write(CUdeviceptr to, const std::vector<uint32_t>& values) {
    KILN_EXPECT_CUDA(KILN_CUDA(cuMemcpyHtoD_v2)(to, values.data(), values.size() * 4));
  }
  std::vector<uint32_t> Read(CUdeviceptr from, size_t count) {
    std::vector<uint32_t> values(count);
    KILN_EXPECT_CUDA(KILN_CUDA(cuMemcpyDtoH_v2)(values.data(), from, count * 4));
    return values;
  }

  // An entry `k` with two pointers and a number, %in %out %n, and this body. %t is the thread's
  // number.
  static std::string Text(const std::string& body) {
    return absl::StrCat(".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry k(",
                        ".param .u64 k_0, .param .u64 k_1, .param .u32 k_2)\n{\n",
                        ".reg .b64 %in; .reg .b64 %out; .reg .b32 %n; .reg .b32 %t;",
                        ".reg .b32 %r<9>; .reg .b64 %d<9>; .reg .pred %p<9>;\n",
                        "ld.param.u64 %in, [k_0]; ld.param.u64 %out, [k_1];",
                        "ld.param.u32 %n, [k_2]; mov.u32 %t, %tid.x;\n", body, "\nret;\n}\n");
  }
  // out[t] = in[t] + n
  static std::string AddText() {
    return Text(
        "mul.wide.u32 %d1, %t, 4; add.u64 %d2, %in, %d1; ld.global.u32 %r1, [%d2];"
        "add.u32 %r1, %r1, %n; add.u64 %d2, %out, %d1; st.global.u32 [%d2], %r1;");
  }
  CUfunction Load(const std::string& text) {
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    KILN_EXPECT_CUDA(KILN_CUDA(cuModuleLoadData)(&module, text.c_str()));
    KILN_EXPECT_CUDA(KILN_CUDA(cuModuleGetFunction)(&function, module, "k"));
    return function;
  }

  struct Arguments {
    CUdeviceptr in;
    CUdeviceptr out;
    uint32_t n;
    void* pointers[3] = {&in, &out, &n};
  };
  CUresult Launch(CUfunction function, CUdeviceptr in, CUdeviceptr out, uint32_t n, CUstream stream,
                  unsigned threads = 4) {
    Arguments arguments{in, out, n};
    return KILN_CUDA(cuLaunchKernel)(function, 1, 1, 1, threads, 1, 1, 0, stream,
                                     arguments.pointers, nullptr);
  }

  CUcontext context_ = nullptr;

 private:
  void ResetControl() {
    control_->devices = 1;
    control_->driver_version = 13000;
    control_->compute_capability = 80;
    control_->memory_bytes = int64_t{1} << 30;
    control_->time.ShowRealTime();
    control_->launch_gate.Open();
    control_->branches_max = int64_t{1} << 30;
    control_->out_of_memory = false;
    control_->next_load_fails = 0;
    control_->next_launch_refused = 0;
    control_->next_launch_fails = 0;
    control_->lost = 0;
    control_->lost_device = 0;
    control_->mistakes = 0;
  }
};

}  // namespace kiln::drivers::cuda

#endif  // KILN_TESTS_STAND_INS_CUDA_TESTING_LIBRARY_H_
