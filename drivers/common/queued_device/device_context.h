// State that all objects of a device share until it is lost: memory, and whether the device works.
#ifndef KILN_DRIVERS_COMMON_QUEUED_DEVICE_DEVICE_CONTEXT_H_
#define KILN_DRIVERS_COMMON_QUEUED_DEVICE_DEVICE_CONTEXT_H_

#include <cstddef>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace kiln::drivers {

// A driver's class adds the vendor's objects. Shared by the device with its buffers, kernels and
// lists, which may outlive it; a revived device has a new one. Thread-safe.
class DeviceContext {
 public:
  DeviceContext() = default;
  virtual ~DeviceContext() = default;
  DeviceContext(const DeviceContext&) = delete;
  DeviceContext& operator=(const DeviceContext&) = delete;

  // Device memory, aligned to Limits::buffer_alignment. Null if out of memory, or if the device is
  // lost; Health distinguishes the two.
  virtual void* AllocateMemory(int64_t bytes) = 0;
  virtual void ReleaseMemory(void* memory) = 0;
  // Host memory that the device reads and writes at the same address.
  virtual absl::StatusOr<char*> AllocateHostMemory(size_t bytes);
  virtual void ReleaseHostMemory(char* memory);
  // Returns RESOURCE_EXHAUSTED for memory that AllocateMemory did not give: "the device does not
  // have 64 bytes left for a table"; the reason of the loss if the device is lost.
  absl::Status NoMemoryFor(int64_t bytes, absl::string_view what) const;

  // OK, or UNAVAILABLE with the reason why the device is lost, as far as calls have noticed.
  absl::Status Health() const ABSL_LOCKS_EXCLUDED(lost_mutex_);
  // The same, but also asks the vendor's library. Does not wait for the device.
  virtual absl::Status AskHealth() { return Health(); }
  // Lets the device do some work; if that fails, the device is lost.
  virtual absl::Status Try() = 0;
  // Marks the device as lost. Returns the first reason, which explains later ones.
  absl::Status Lose(absl::string_view why) ABSL_LOCKS_EXCLUDED(lost_mutex_);

 private:
  mutable absl::Mutex lost_mutex_;
  absl::Status lost_ ABSL_GUARDED_BY(lost_mutex_);
};

}  // namespace kiln::drivers

#endif  // KILN_DRIVERS_COMMON_QUEUED_DEVICE_DEVICE_CONTEXT_H_
