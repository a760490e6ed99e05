// Tests of contexts, memory, copies, launches and streams: the real driver's results, and the
// mistakes that it does not tolerate.
#include "tests/stand_ins/cuda/testing/library.h"

namespace kiln::drivers::cuda {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Blocks a stream until `open`.
struct Gate {
  // Waits until the stream is blocked here. If its context had already failed, this would never
  // return.
  void WaitUntilReached() const {
    while (!reached) std::this_thread::yield();
  }
  ~Gate() {
    open = true;
    while (!passed) std::this_thread::yield();
  }
  std::atomic<bool> reached = false;
  std::atomic<bool> open = false;
  std::atomic<bool> passed = false;
};
void StandAtGate(void* data) {
  auto* const gate = static_cast<Gate*>(data);
  gate->reached = true;
  while (!gate->open) std::this_thread::yield();
  gate->passed = true;
}

TEST_F(CudaStandInTest, CallsNeedAContext) {
  CUdeviceptr address = 0;
  KILN_EXPECT_CUDA(KILN_CUDA(cuCtxPopCurrent_v2)(nullptr));
  EXPECT_EQ(KILN_CUDA(cuMemAlloc_v2)(&address, 4), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(control_->mistakes, 1);
  int value = 0;
  EXPECT_EQ(KILN_CUDA(cuDeviceGetAttribute)(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 7),
            CUDA_ERROR_INVALID_DEVICE);
  KILN_EXPECT_CUDA(KILN_CUDA(cuDeviceGetAttribute)(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0));
  EXPECT_EQ(value, 32);
  const char* name = nullptr;
  KILN_EXPECT_CUDA(KILN_CUDA(cuGetErrorName)(CUDA_ERROR_ILLEGAL_ADDRESS, &name));
  EXPECT_STREQ(name, "CUDA_ERROR_ILLEGAL_ADDRESS");
}

TEST_F(CudaStandInTest, MemoryIsAccountedAndChecked) {
  control_->memory_bytes = 1000;
  const CUdeviceptr a = Allocate(600);
  CUdeviceptr b = 0;
  EXPECT_EQ(KILN_CUDA(cuMemAlloc_v2)(&b, 401), CUDA_ERROR_OUT_OF_MEMORY);
  KILN_EXPECT_CUDA(KILN_CUDA(cuMemFree_v2)(a));
  EXPECT_EQ(KILN_CUDA(cuMemFree_v2)(a), CUDA_ERROR_INVALID_VALUE);
  control_->out_of_memory = true;
  EXPECT_EQ(KILN_CUDA(cuMemAlloc_v2)(&b, 4), CUDA_ERROR_OUT_OF_MEMORY);
  control_->out_of_memory = false;
  EXPECT_EQ(KILN_CUDA(cuMemAlloc_v2)(&b, 0), CUDA_ERROR_INVALID_VALUE);
  const CUdeviceptr c = Allocate(8);
  EXPECT_NE(c, a);  // addresses are not reused
  const uint32_t value[3] = {1, 2, 3};
  EXPECT_EQ(KILN_CUDA(cuMemcpyHtoD_v2)(c, value, 12), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(KILN_CUDA(cuMemcpyHtoD_v2)(a, value, 4), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(KILN_CUDA(cuMemcpyDtoD_v2)(c + 4, c, 8), CUDA_ERROR_INVALID_VALUE);
  KILN_EXPECT_CUDA(KILN_CUDA(cuMemsetD32Async)(c, 77, 2, nullptr));
  EXPECT_THAT(Read(c, 2), ElementsAre(77, 77));
}

TEST_F(CudaStandInTest, KernelsRun) {
  const CUfunction add = Load(AddText());
  const CUdeviceptr in = Allocate(16);
  const CUdeviceptr out = Allocate(16);
  Write(in, {1, 2, 3, 4});
  KILN_EXPECT_CUDA(Launch(add, in, out, 10, nullptr));
  EXPECT_THAT(Read(out, 4), ElementsAre(11, 12, 13, 14));
  EXPECT_EQ(Launch(add, in, out, 10, nullptr, 2000), CUDA_ERROR_INVALID_VALUE);
  Arguments arguments{in, out, 1};
  EXPECT_EQ(KILN_CUDA(cuLaunchKernel)(add, 1, 1, 1, 4, 1, 1, 50 << 10, nullptr, arguments.pointers,
                                      nullptr),
            CUDA_ERROR_INVALID_VALUE);
  KILN_EXPECT_CUDA(KILN_CUDA(cuFuncSetAttribute)(
      add, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100 << 10));
  KILN_EXPECT_CUDA(KILN_CUDA(cuLaunchKernel)(add, 1, 1, 1, 4, 1, 1, 50 << 10, nullptr,
                                             arguments.pointers, nullptr));
  control_->next_launch_refused = CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  EXPECT_EQ(Launch(add, in, out, 10, nullptr), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  KILN_EXPECT_CUDA(Launch(add, in, out, 10, nullptr));
  KILN_EXPECT_CUDA(KILN_CUDA(cuCtxSynchronize)());
}

TEST_F(CudaStandInTest, AFaultStaysUntilTheContextIsReset) {
  const CUfunction add = Load(AddText());
  const CUdeviceptr in = Allocate(16);
  KILN_EXPECT_CUDA(Launch(add, in, in, 1, nullptr, 5));
  EXPECT_EQ(KILN_CUDA(cuCtxSynchronize)(), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_THAT(Message(), HasSubstr("thread (4, 0, 0)"));
  CUdeviceptr other = 0;
  EXPECT_EQ(KILN_CUDA(cuMemAlloc_v2)(&other, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(Launch(add, in, in, 1, nullptr), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(KILN_CUDA(cuStreamSynchronize)(nullptr), CUDA_ERROR_ILLEGAL_ADDRESS);
  KILN_EXPECT_CUDA(KILN_CUDA(cuDevicePrimaryCtxReset_v2)(0));
  EXPECT_EQ(KILN_CUDA(cuMemAlloc_v2)(&other, 4), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  KILN_EXPECT_CUDA(KILN_CUDA(cuDevicePrimaryCtxRelease_v2)(0));
  KILN_EXPECT_CUDA(KILN_CUDA(cuDevicePrimaryCtxRetain)(&context_, 0));
  EXPECT_EQ(Launch(add, in, in, 1, nullptr), CUDA_ERROR_INVALID_HANDLE);
  KILN_EXPECT_CUDA(Launch(Load(AddText()), Allocate(16), Allocate(16), 1, nullptr));
  KILN_EXPECT_CUDA(KILN_CUDA(cuCtxSynchronize)());
}

TEST_F(CudaStandInTest, ALostDeviceAnswersNothing) {
  const CUdeviceptr in = Allocate(16);
  const CUfunction add = Load(AddText());
  control_->lost = CUDA_ERROR_ECC_UNCORRECTABLE;
  EXPECT_EQ(Launch(add, in, in, 1, nullptr), CUDA_ERROR_ECC_UNCORRECTABLE);
  EXPECT_EQ(KILN_CUDA(cuDevicePrimaryCtxReset_v2)(0), CUDA_ERROR_ECC_UNCORRECTABLE);
  control_->lost = 0;
  KILN_EXPECT_CUDA(KILN_CUDA(cuDevicePrimaryCtxRelease_v2)(0));
  KILN_EXPECT_CUDA(KILN_CUDA(cuDevicePrimaryCtxRetain)(&context_, 0));
  KILN_EXPECT_CUDA(KILN_CUDA(cuMemFree_v2)(Allocate(4)));
}

TEST_F(CudaStandInTest, LoadingSaysWhatIsWrong) {
  char log[200];
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof(log))};
  CUmodule module = nullptr;
  EXPECT_EQ(KILN_CUDA(cuModuleLoadDataEx)(&module, Text("nonsense;").c_str(), 2, options, values),
            CUDA_ERROR_INVALID_PTX);
  EXPECT_THAT(log, HasSubstr("nonsense"));
  control_->compute_capability = 70;
  EXPECT_EQ(KILN_CUDA(cuModuleLoadData)(&module, AddText().c_str()), CUDA_ERROR_INVALID_PTX);
  control_->compute_capability = 80;
  control_->driver_version = 11080;
  EXPECT_EQ(KILN_CUDA(cuModuleLoadData)(&module, AddText().c_str()),
            CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  control_->driver_version = 12000;
  control_->next_load_fails = CUDA_ERROR_OUT_OF_MEMORY;
  EXPECT_EQ(KILN_CUDA(cuModuleLoadData)(&module, AddText().c_str()), CUDA_ERROR_OUT_OF_MEMORY);
  KILN_EXPECT_CUDA(KILN_CUDA(cuModuleLoadData)(&module, AddText().c_str()));
  CUfunction function = nullptr;
  EXPECT_EQ(KILN_CUDA(cuModuleGetFunction)(&function, module, "other"), CUDA_ERROR_NOT_FOUND);
  KILN_EXPECT_CUDA(KILN_CUDA(cuModuleUnload)(module));
  EXPECT_EQ(KILN_CUDA(cuModuleUnload)(module), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(CudaStandInTest, EventsOrderStreams) {
  const CUfunction add = Load(AddText());
  const CUdeviceptr values = Allocate(16);
  Write(values, {0, 0, 0, 0});
  const CUstream first = Stream();
  const CUstream second = Stream();
  const CUevent begin = Event();
  const CUevent end = Event();
  const CUdeviceptr copied = Allocate(16);
  control_->time.Simulate(/*launch_milliseconds=*/500);
  control_->launch_gate.Close();
  KILN_EXPECT_CUDA(KILN_CUDA(cuEventRecord)(begin, first));
  KILN_EXPECT_CUDA(Launch(add, values, values, 5, first));
  KILN_EXPECT_CUDA(KILN_CUDA(cuEventRecord)(end, first));
  EXPECT_EQ(KILN_CUDA(cuEventQuery)(end), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(KILN_CUDA(cuStreamQuery)(first), CUDA_ERROR_NOT_READY);
  KILN_EXPECT_CUDA(KILN_CUDA(cuStreamWaitEvent)(second, end, 0));
  KILN_EXPECT_CUDA(KILN_CUDA(cuMemcpyDtoDAsync_v2)(copied, values, 16, second));
  EXPECT_EQ(KILN_CUDA(cuStreamQuery)(second), CUDA_ERROR_NOT_READY);
  control_->launch_gate.Open();
  std::vector<uint32_t> read(4);
  KILN_EXPECT_CUDA(KILN_CUDA(cuMemcpyDtoHAsync_v2)(read.data(), copied, 16, second));
  EXPECT_THAT(read, ElementsAre(5, 5, 5, 5));
  float milliseconds = 0;
  KILN_EXPECT_CUDA(KILN_CUDA(cuEventElapsedTime)(&milliseconds, begin, end));
  EXPECT_FLOAT_EQ(milliseconds, 500);
  KILN_EXPECT_CUDA(KILN_CUDA(cuStreamDestroy_v2)(first));
  EXPECT_EQ(Launch(add, values, values, 5, first), CUDA_ERROR_INVALID_HANDLE);
  KILN_EXPECT_CUDA(KILN_CUDA(cuEventDestroy_v2)(end));
  EXPECT_EQ(KILN_CUDA(cuEventRecord)(end, second), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(CudaStandInTest, CallbacksMustNotCall) {
  struct Called {
    CUresult (*synchronize)();
    CUresult answer;
  } called{&KILN_CUDA(cuCtxSynchronize), CUDA_SUCCESS};
  const CUhostFn function = [](void* data) {
    auto* const mine = static_cast<Called*>(data);
    mine->answer = mine->synchronize();
  };
  KILN_EXPECT_CUDA(KILN_CUDA(cuLaunchHostFunc)(nullptr, function, &called));
  KILN_EXPECT_CUDA(KILN_CUDA(cuCtxSynchronize)());
  EXPECT_EQ(called.answer, CUDA_ERROR_NOT_PERMITTED);
}

TEST_F(CudaStandInTest, PoolsFollowTheOrderOfStreams) {
  const CUfunction add = Load(AddText());
  const CUstream stream = Stream();
  CUdeviceptr values = 0;
  KILN_EXPECT_CUDA(KILN_CUDA(cuMemAllocAsync)(&values, 16, stream));
  KILN_EXPECT_CUDA(KILN_CUDA(cuMemsetD32Async)(values, 3, 4, stream));
  KILN_EXPECT_CUDA(Launch(add, values, values, 4, stream));
  std::vector<uint32_t> read(4);
  KILN_EXPECT_CUDA(KILN_CUDA(cuMemcpyDtoHAsync_v2)(read.data(), values, 16, stream));
  EXPECT_THAT(read, ElementsAre(7, 7, 7, 7));
  KILN_EXPECT_CUDA(KILN_CUDA(cuMemFreeAsync)(values, stream));
  EXPECT_EQ(KILN_CUDA(cuMemFreeAsync)(values, stream), CUDA_ERROR_INVALID_VALUE);
  KILN_EXPECT_CUDA(KILN_CUDA(cuStreamSynchronize)(stream));
  CUmemoryPool pool = nullptr;
  KILN_EXPECT_CUDA(KILN_CUDA(cuDeviceGetDefaultMemPool)(&pool, 0));
  uint64_t used = 1;
  KILN_EXPECT_CUDA(KILN_CUDA(cuMemPoolGetAttribute)(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
  EXPECT_EQ(used, 0u);
  // Another stream that does not wait finds no allocation there.
  const CUstream other = Stream();
  Gate gate;
  KILN_EXPECT_CUDA(KILN_CUDA(cuLaunchHostFunc)(stream, StandAtGate, &gate));
  gate.WaitUntilReached();
  KILN_EXPECT_CUDA(KILN_CUDA(cuMemAllocAsync)(&values, 16, stream));
  KILN_EXPECT_CUDA(Launch(add, values, values, 4, other));
  EXPECT_EQ(KILN_CUDA(cuStreamSynchronize)(other), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(CudaStandInTest, PinnedMemoryIsReadWhenTheStreamComesThere) {
  void* pinned = nullptr;
  KILN_EXPECT_CUDA(KILN_CUDA(cuMemHostAlloc)(&pinned, 16, CU_MEMHOSTALLOC_PORTABLE));
  const CUdeviceptr values = Allocate(16);
  const CUstream stream = Stream();
  Gate gate;
  KILN_EXPECT_CUDA(KILN_CUDA(cuLaunchHostFunc)(stream, StandAtGate, &gate));
  gate.WaitUntilReached();
  auto* const numbers = static_cast<uint32_t*>(pinned);
  std::vector<uint32_t> pageable = {1, 1, 1, 1};
  const CUdeviceptr copied = Allocate(16);
  std::fill_n(numbers, 4, 1u);
  KILN_EXPECT_CUDA(KILN_CUDA(cuMemcpyHtoDAsync_v2)(values, pinned, 16, stream));
  KILN_EXPECT_CUDA(KILN_CUDA(cuMemcpyHtoDAsync_v2)(copied, pageable.data(), 16, stream));
  std::fill_n(numbers, 4, 2u);
  pageable.assign(4, 2);
  gate.open = true;
  KILN_EXPECT_CUDA(KILN_CUDA(cuStreamSynchronize)(stream));
  EXPECT_THAT(Read(values, 4), ElementsAre(2, 2, 2, 2));
  EXPECT_THAT(Read(copied, 4), ElementsAre(1, 1, 1, 1));
  KILN_EXPECT_CUDA(KILN_CUDA(cuMemFreeHost)(pinned));
  EXPECT_EQ(KILN_CUDA(cuMemFreeHost)(pinned), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(CudaStandInTest, PeersNeedAccess) {
  control_->devices = 2;
  CUcontext second = nullptr;
  KILN_EXPECT_CUDA(KILN_CUDA(cuDevicePrimaryCtxRetain)(&second, 1));
  KILN_EXPECT_CUDA(KILN_CUDA(cuCtxPushCurrent_v2)(second));
  const CUdeviceptr there = Allocate(16);
  Write(there, {1, 2, 3, 4});
  KILN_EXPECT_CUDA(KILN_CUDA(cuCtxPopCurrent_v2)(nullptr));
  const CUfunction add = Load(AddText());
  const CUdeviceptr here = Allocate(16);
  KILN_EXPECT_CUDA(KILN_CUDA(cuMemcpyPeerAsync)(here, context_, there, second, 16, nullptr));
  KILN_EXPECT_CUDA(KILN_CUDA(cuCtxEnablePeerAccess)(second, 0));
  KILN_EXPECT_CUDA(Launch(add, there, here, 1, nullptr));
  EXPECT_THAT(Read(here, 4), ElementsAre(2, 3, 4, 5));
  KILN_EXPECT_CUDA(KILN_CUDA(cuCtxDisablePeerAccess)(second));
  KILN_EXPECT_CUDA(Launch(add, there, here, 1, nullptr));
  EXPECT_EQ(KILN_CUDA(cuCtxSynchronize)(), CUDA_ERROR_ILLEGAL_ADDRESS);
  KILN_EXPECT_CUDA(KILN_CUDA(cuDevicePrimaryCtxRelease_v2)(1));
}

}  // namespace
}  // namespace kiln::drivers::cuda
