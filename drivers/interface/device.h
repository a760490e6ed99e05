// One device: memory, kernels and queues. All methods are thread-safe unless documented otherwise.
#ifndef KILN_DRIVERS_INTERFACE_DEVICE_H_
#define KILN_DRIVERS_INTERFACE_DEVICE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "drivers/interface/buffer.h"
#include "drivers/interface/command_list.h"
#include "drivers/interface/kernel_image.h"
#include "drivers/interface/target.h"

namespace kiln::drivers {

struct DeviceInfo {
  std::string name;   // "cpu:0"
  std::string model;  // the vendor's name
  Target target;
  int64_t memory_bytes = 0;  // the memory that Kiln may use
  // Where the system lists it, "0000:3b:00.0"; empty if it is on no PCI bus, or not known.
  std::string pci_address = {};
  bool is_host_processor = false;  // it is the processors of this machine
};

// A loaded kernel image. Requires: destroyed only after every queue that uses it.
class LoadedKernel {
 public:
  virtual ~LoadedKernel() = default;
  virtual const KernelImage& image() const = 0;
};

// LoadKernel's error for a kernel whose blocks are too large for the device because each thread
// needs many registers: INVALID_ARGUMENT with the allowed number of threads.
absl::Status BlocksTooLarge(absl::string_view message, int threads_max);
// Returns that number, or nullopt for another error.
std::optional<int> BlockThreadsMax(const absl::Status& status);

// LoadKernel's error for an image whose `finished` the device rejects, for example because another
// version of the vendor's driver made it: FAILED_PRECONDITION. The image has to be finished again.
absl::Status FinishedRefused(absl::string_view message);
bool IsFinishedRefused(const absl::Status& status);

class Device {
 public:
  virtual ~Device() = default;

  virtual const DeviceInfo& info() const = 0;

  // Requires: `bytes` >= 0. The memory is uninitialised and aligned to limits.buffer_alignment.
  // RESOURCE_EXHAUSTED names the requested size and the memory left. Destroying the buffer frees
  // the memory; no submitted list may be using it.
  virtual absl::StatusOr<std::unique_ptr<Buffer>> Allocate(int64_t bytes) = 0;

  // Bytes of freed memory kept for the next buffers of the same size. Together with allocated
  // memory they stay within info().memory_bytes.
  virtual int64_t cached_bytes() const = 0;

  // INVALID_ARGUMENT: the image is damaged or for another architecture. BlocksTooLarge: its blocks
  // are too large although limits.threads_per_block allows them. Or FinishedRefused.
  virtual absl::StatusOr<std::unique_ptr<LoadedKernel>> LoadKernel(const KernelImage& image) = 0;

  // Whether lists of this device may use another device's buffer, in kernels and in copies. Always
  // true for its own buffers. May change when either device is lost.
  virtual bool CanReach(const Buffer& buffer) const = 0;

  // Makes a replayable queue from a list, whose kernels must outlive it. Checks that every command
  // is well-formed. RESOURCE_EXHAUSTED: no memory for what the list needs besides its slots.
  virtual absl::StatusOr<std::unique_ptr<PreparedList>> Prepare(CommandList list) = 0;

  // Starts a prepared list with these buffers in its slots and returns at once. Lists start in the
  // order of submission, and each sees the writes of earlier ones. `done` is called once, on a
  // driver thread, and must not block. Requires: the buffers live until then. INVALID_ARGUMENT
  // (wrong number or size of buffers): `done` is not called.
  virtual absl::Status Submit(PreparedList& list, absl::Span<Buffer* const> slots,
                              SubmitOptions options, std::function<void(SubmitResult)> done) = 0;

  // Cancels lists whose SubmitOptions::unwanted is true, the running one included; does not wait
  // for them to end. They end with CANCELLED, and the content of their buffers is undefined. A
  // device that does not support this runs them to the end.
  virtual void StopUnwanted() {}
  // True if StopUnwanted is supported. A slow list is then not evidence of a hung device.
  virtual bool stops_lists() const { return false; }
  // Whether a list can end between two tasks of a kernel (SubmitOptions::goes_on).
  virtual bool yields() const { return false; }
  // Whether it calls SubmitOptions::begin_commit. Then two slots of a list may hold the same buffer
  // if a kernel writes one of them in place of the other.
  virtual bool commits() const { return false; }

  // Copy between host memory and a buffer, concurrently with submitted lists of any session and
  // without waiting for them. Requires: nothing submitted before writes these bytes or, for a copy
  // to the device, uses them. Work submitted later sees the written bytes, and starts after `done`
  // has returned. `done` is called once, on a driver thread or before this returns, and must not
  // block. Memory and buffer must live until then. OUT_OF_RANGE if offset + size exceeds the
  // buffer. If an error is returned, `done` is not called.
  using CopyDone = std::function<void(const absl::Status&)>;
  virtual absl::Status StartCopyToDevice(Buffer& destination, int64_t offset,
                                         absl::Span<const char> source, CopyDone done) = 0;
  virtual absl::Status StartCopyToHost(const Buffer& source, int64_t offset,
                                       absl::Span<char> destination, CopyDone done) = 0;

  // The same, ordered after everything submitted before; return when the copy has ended. Must not
  // be called from a driver thread.
  absl::Status CopyToDevice(Buffer& destination, int64_t offset, absl::Span<const char> source);
  absl::Status CopyToHost(const Buffer& source, int64_t offset, absl::Span<char> destination);

  // Waits until all submitted work has ended.
  virtual absl::Status Synchronize() = 0;

  // OK, or why this device can no longer be used (a lost GPU, a poisoned context). Never waits for
  // the device.
  virtual absl::Status Health() = 0;

  // Makes a device usable again that Health reports lost, or returns why it is still lost.
  // Requires: everything submitted has ended. Buffers, kernels and lists from before can then only
  // be destroyed.
  virtual absl::Status Revive() = 0;
};

}  // namespace kiln::drivers

#endif  // KILN_DRIVERS_INTERFACE_DEVICE_H_
