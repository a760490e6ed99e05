// Copies and fills.
#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "tests/stand_ins/cuda/objects.h"

namespace kiln::drivers::cuda {
namespace {

// Memory that a task accesses; `keep` holds it. Null if it is not live.
uint8_t* Resolve(CUdeviceptr address, size_t bytes, std::shared_ptr<uint8_t[]>* keep) {
  Lock lock(TheRuntime().mutex);
  const Allocation* const allocation = FindAllocation(address);
  if (allocation == nullptr || !allocation->live ||
      allocation->bytes - (address - allocation->address) < bytes)
    return nullptr;
  *keep = allocation->storage;
  return allocation->host + (address - allocation->address);
}

CUresult Unreachable(const char* what, CUdeviceptr address, size_t bytes) {
  Report(absl::StrCat(what, ": ", bytes, " bytes at 0x", absl::Hex(address),
                      " are not allocated at that moment of the stream"));
  return CUDA_ERROR_ILLEGAL_ADDRESS;
}

size_t BytesMovedMax() { return static_cast<size_t>(TheControl().bytes_moved_max); }

bool IsPinned(const void* address, size_t bytes) {
  return IsDeviceMemory(reinterpret_cast<CUdeviceptr>(address), bytes);
}

bool Overlap(const Copy& copy) {
  if (copy.to_device == 0 || copy.from_device == 0) return false;
  return copy.to_device < copy.from_device + copy.bytes &&
         copy.from_device < copy.to_device + copy.bytes;
}

std::string WhatIsWrong(const Copy& copy) {
  if (copy.to_device == 0 && copy.to_host == nullptr) return "no destination";
  if (copy.from_device == 0 && copy.from_host == nullptr) return "no source";
  if (copy.to_device != 0 && !IsDeviceMemory(copy.to_device, copy.bytes))
    return "the destination is not in one allocation";
  if (copy.from_device != 0 && !IsDeviceMemory(copy.from_device, copy.bytes))
    return "the source is not in one allocation";
  return Overlap(copy) ? "source and destination overlap" : "";
}

// Depends on the kind of host memory: if it is not pinned, a source is read at once, and the call
// waits for a destination.
CUresult PushCopy(const char* call, Context& context, Copy copy, CUstream handle, bool wait,
                  Lock& lock) {
  const std::shared_ptr<Stream> stream = FindStream(context, handle);
  if (stream == nullptr)
    return Mistake(std::string(call) + ": no stream", CUDA_ERROR_INVALID_HANDLE);
  if (copy.bytes == 0) return CUDA_SUCCESS;
  if (const std::string wrong = WhatIsWrong(copy); !wrong.empty())
    return Mistake(absl::StrCat(call, ": ", wrong), CUDA_ERROR_INVALID_VALUE);
  std::shared_ptr<std::vector<uint8_t>> staged;
  if (copy.from_host != nullptr && !IsPinned(copy.from_host, copy.bytes)) {
    const auto* bytes = static_cast<const uint8_t*>(copy.from_host);
    staged = std::make_shared<std::vector<uint8_t>>(bytes, bytes + copy.bytes);
    copy.from_host = staged->data();
  }
  if (copy.to_host != nullptr && !IsPinned(copy.to_host, copy.bytes)) wait = true;
  const std::shared_ptr<Completion> completion =
      Push(*stream, [&context, copy, staged] { return RunCopy(context, copy, nullptr); });
  return wait ? WaitFor(context, completion, lock) : CUDA_SUCCESS;
}

CUresult PushFill(const char* call, const Fill& fill, CUstream handle) {
  return InContext(call, [&](Context& context, Lock&) {
    const std::shared_ptr<Stream> stream = FindStream(context, handle);
    if (stream == nullptr)
      return Mistake(std::string(call) + ": no stream", CUDA_ERROR_INVALID_HANDLE);
    if (fill.to % fill.element_bytes != 0 ||
        !IsDeviceMemory(fill.to, std::max<size_t>(fill.count * fill.element_bytes, 1)))
      return Mistake(std::string(call) + ": the memory", CUDA_ERROR_INVALID_VALUE);
    Push(*stream, [&context, fill] { return RunFill(context, fill, nullptr); });
    return CUDA_SUCCESS;
  });
}

CUresult CopyNow(const char* call, const Copy& copy) {
  return InContext(call, [&](Context& context, Lock& lock) {
    return PushCopy(call, context, copy, nullptr, true, lock);
  });
}
CUresult CopyInStream(const char* call, const Copy& copy, CUstream stream) {
  return InContext(call, [&](Context& context, Lock& lock) {
    return PushCopy(call, context, copy, stream, false, lock);
  });
}

}  // namespace

CUresult RunCopy(Context&, const Copy& copy, Accesses* accesses) {
  std::shared_ptr<uint8_t[]> keep_to;
  std::shared_ptr<uint8_t[]> keep_from;
  void* to = copy.to_host;
  const void* from = copy.from_host;
  if (to == nullptr) to = Resolve(copy.to_device, copy.bytes, &keep_to);
  if (from == nullptr) from = Resolve(copy.from_device, copy.bytes, &keep_from);
  if (to == nullptr) return Unreachable("copy to", copy.to_device, copy.bytes);
  if (from == nullptr) return Unreachable("copy from", copy.from_device, copy.bytes);
  std::memcpy(to, from, std::min(copy.bytes, BytesMovedMax()));
  if (accesses != nullptr) {
    const auto begin_from = reinterpret_cast<uint64_t>(copy.from_host) + copy.from_device;
    const auto begin_to = reinterpret_cast<uint64_t>(copy.to_host) + copy.to_device;
    accesses->reads.push_back({begin_from, begin_from + copy.bytes});
    accesses->writes.push_back({begin_to, begin_to + copy.bytes});
  }
  ++TheControl().copies_run;
  TheControl().time.HasCopied();
  return CUDA_SUCCESS;
}

CUresult RunFill(Context&, const Fill& fill, Accesses* accesses) {
  const size_t bytes = fill.count * fill.element_bytes;
  std::shared_ptr<uint8_t[]> keep;
  if (bytes == 0) return CUDA_SUCCESS;
  uint8_t* const to = Resolve(fill.to, bytes, &keep);
  if (to == nullptr) return Unreachable("fill", fill.to, bytes);
  const size_t count = std::min(fill.count, BytesMovedMax() / fill.element_bytes);
  for (size_t i = 0; i < count; ++i)
    std::memcpy(to + i * fill.element_bytes, &fill.value, fill.element_bytes);
  if (accesses != nullptr) accesses->writes.push_back({fill.to, fill.to + bytes});
  ++TheControl().fills_run;
  TheControl().time.HasCopied();
  return CUDA_SUCCESS;
}

extern "C" {

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t bytes) {
  return CopyNow("cuMemcpyHtoD", {.to_device = to, .from_host = from, .bytes = bytes});
}
CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes) {
  return CopyNow("cuMemcpyDtoH", {.to_host = to, .from_device = from, .bytes = bytes});
}
CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return CopyNow("cuMemcpyDtoD", {.to_device = to, .from_device = from, .bytes = bytes});
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  return CopyInStream("cuMemcpyHtoDAsync", {.to_device = to, .from_host = from, .bytes = bytes},
                      stream);
}
CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return CopyInStream("cuMemcpyDtoHAsync", {.to_host = to, .from_device = from, .bytes = bytes},
                      stream);
}
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return CopyInStream("cuMemcpyDtoDAsync", {.to_device = to, .from_device = from, .bytes = bytes},
                      stream);
}
CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                           CUcontext from_context, size_t bytes, CUstream stream) {
  if (to_context == nullptr || from_context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return CopyInStream("cuMemcpyPeerAsync", {.to_device = to, .from_device = from, .bytes = bytes},
                      stream);
}
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
  return PushFill("cuMemsetD8Async", {to, value, 1, count}, stream);
}
CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream) {
  return PushFill("cuMemsetD16Async", {to, value, 2, count}, stream);
}
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream) {
  return PushFill("cuMemsetD32Async", {to, value, 4, count}, stream);
}

}  // extern "C"

}  // namespace kiln::drivers::cuda
