// One device: memory, kernels and queues. All methods are thread-safe unless they say otherwise.
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
  int64_t memory_bytes = 0;  // what Kiln may use
};

// A loaded kernel image. Destroy it only when no queue that uses it is left.
class LoadedKernel {
 public:
  virtual ~LoadedKernel() = default;
  virtual const KernelImage& image() const = 0;
};

// LoadKernel's error for a kernel of which the device takes at most so many threads in a block,
// because each of them needs many registers: INVALID_ARGUMENT with the number.
absl::Status BlocksTooLarge(absl::string_view message, int threads_max);
// That number; nothing if the error is another one.
std::optional<int> BlockThreadsMax(const absl::Status& status);

// LoadKernel's error for an image whose `finished` the device does not take, because another
// version of the vendor's driver has made it, say: FAILED_PRECONDITION. The image is to be finished
// anew.
absl::Status FinishedRefused(absl::string_view message);
bool IsFinishedRefused(const absl::Status& status);

class Device {
 public:
  virtual ~Device() = default;

  virtual const DeviceInfo& info() const = 0;

  // `bytes` >= 0, uninitialised, aligned to limits.buffer_alignment.
  // RESOURCE_EXHAUSTED names what was asked for and what is left. Destroying the buffer gives the
  // memory back; it must not be in use by a submitted list.
  virtual absl::StatusOr<std::unique_ptr<Buffer>> Allocate(int64_t bytes) = 0;

  // Freed memory that is kept for the next buffer of its size. With what is handed out it stays
  // within info().memory_bytes.
  virtual int64_t cached_bytes() const = 0;

  // INVALID_ARGUMENT: the image is for another architecture or damaged. Its blocks may be too large
  // even though limits.threads_per_block allows them: BlocksTooLarge. Or FinishedRefused.
  virtual absl::StatusOr<std::unique_ptr<LoadedKernel>> LoadKernel(const KernelImage& image) = 0;

  // Whether lists of this device may name another device's buffer, of kernels and of copies alike.
  // Its own is always true. May change when either device is lost.
  virtual bool CanReach(const Buffer& buffer) const = 0;

  // Makes a replayable queue of a list. The list's kernels must outlive it. Checks that every
  // command is well-formed. RESOURCE_EXHAUSTED: no memory for what the list needs beside its slots.
  virtual absl::StatusOr<std::unique_ptr<PreparedList>> Prepare(CommandList list) = 0;

  // Starts a prepared list with these buffers in its slots and returns at once; lists start in the
  // order of submission and each sees what the ones before it wrote. `done` is called once, from a
  // thread of the driver's, and must not block. Buffers must live until then. INVALID_ARGUMENT
  // (wrong number or size of buffers): `done` is not called.
  virtual absl::Status Submit(PreparedList& list, absl::Span<Buffer* const> slots,
                              SubmitOptions options, std::function<void(SubmitResult)> done) = 0;

  // Has lists end that nobody wants any more (SubmitOptions::unwanted), the one that runs included;
  // does not wait for that. They end with CANCELLED, and what their buffers hold is undefined. A
  // device that cannot runs them to their ends.
  virtual void StopUnwanted() {}
  // Whether it can: then a list that takes long is no sign of a device that hangs.
  virtual bool stops_lists() const { return false; }
  // Whether a list can end between two tasks of a kernel (SubmitOptions::goes_on).
  virtual bool yields() const { return false; }

  // Copies between host memory and a buffer that run beside submitted lists, whoever's they are,
  // and wait for none: the caller knows that nothing submitted before writes these bytes or, if it
  // is they that are written, uses them. What is submitted later sees what was written, and starts
  // after `done` has returned. `done` is called once, from a thread of the driver's or before this
  // returns, and must not block. Memory and buffer must live until then. OUT_OF_RANGE if offset +
  // size does not fit, as other errors that are returned: `done` is not called.
  using CopyDone = std::function<void(const absl::Status&)>;
  virtual absl::Status StartCopyToDevice(Buffer& destination, int64_t offset,
                                         absl::Span<const char> source, CopyDone done) = 0;
  virtual absl::Status StartCopyToHost(const Buffer& source, int64_t offset,
                                       absl::Span<char> destination, CopyDone done) = 0;

  // The same after everything submitted before; return when the copy has ended. Not to be called
  // from a thread of the driver's.
  absl::Status CopyToDevice(Buffer& destination, int64_t offset, absl::Span<const char> source);
  absl::Status CopyToHost(const Buffer& source, int64_t offset, absl::Span<char> destination);

  // Waits until all that was submitted has ended.
  virtual absl::Status Synchronize() = 0;

  // OK, or why this device can no longer be used (a lost GPU, a poisoned context). Never waits for
  // the device.
  virtual absl::Status Health() = 0;

  // Makes a device usable again that Health calls lost, or says why it still is not. Everything
  // submitted has ended. Its buffers, kernels and lists from before are good for nothing from here
  // on but to be destroyed.
  virtual absl::Status Revive() = 0;
};

}  // namespace kiln::drivers

#endif  // KILN_DRIVERS_INTERFACE_DEVICE_H_
