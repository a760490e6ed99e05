// One command of a list as drivers enqueue it: a launch, a copy or a fill.
#ifndef KILN_DRIVERS_COMMON_QUEUED_DEVICE_LIST_CALL_H_
#define KILN_DRIVERS_COMMON_QUEUED_DEVICE_LIST_CALL_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "drivers/common/dependencies.h"
#include "drivers/common/queued_device/device_context.h"
#include "drivers/interface/command_list.h"
#include "drivers/interface/device.h"

namespace kiln::drivers {

// A kernel of one context. A driver's class adds the vendor's objects.
class QueuedKernel : public LoadedKernel {
 public:
  QueuedKernel(const DeviceContext* owner, const KernelImage& image)
      : owner_(owner), image_(image) {}
  const KernelImage& image() const override { return image_; }
  // Only for comparison.
  const DeviceContext* owner() const { return owner_; }

 private:
  const DeviceContext* const owner_;
  const KernelImage image_;
};

struct ListCall {
  enum class Kind : uint8_t { kLaunch, kCopy, kFill };

  Kind kind = Kind::kLaunch;
  uint8_t value = 0;                     // kFill
  const LoadedKernel* kernel = nullptr;  // kLaunch
  GridRange points = {};                 // kLaunch
  size_t command = 0;                    // its number in the list
  // The kernel's arguments; a copy's destination and source; a fill's destination.
  std::vector<RangeAccess> operands = {};

  ListCall() = default;
  ListCall(const LaunchCommand& launch, size_t number);
  ListCall(const CopyCommand& copy, size_t number);
  ListCall(const FillCommand& fill, size_t number);

  // The bytes of a copy or a fill.
  size_t bytes() const { return static_cast<size_t>(operands.front().range.bytes); }
  // Whether it names its operands by address, so that it changes when slots have other buffers.
  bool HasAddresses() const;
  // For an error's message: "cannot launch the kernel softmax".
  std::string WhatFailed() const;
};

}  // namespace kiln::drivers

#endif  // KILN_DRIVERS_COMMON_QUEUED_DEVICE_LIST_CALL_H_
