// One command of a list, as it is appended to a command list of Level Zero's.
#ifndef KILN_DRIVERS_LEVEL_ZERO_CALL_H_
#define KILN_DRIVERS_LEVEL_ZERO_CALL_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "drivers/level_zero/context.h"
#include "drivers/level_zero/kernel.h"

namespace kiln::drivers::level_zero {

struct Call {
  enum class Kind : uint8_t { kLaunch, kCopy, kFill };
  // An argument, or a copy's destination and source, or what is filled.
  struct Operand {
    int slot;
    int64_t offset;
  };

  Kind kind = Kind::kLaunch;
  uint8_t value = 0;                        // kFill
  size_t bytes = 0;                         // kCopy, kFill; more than 0
  const LevelZeroKernel* kernel = nullptr;  // kLaunch
  size_t command = 0;                       // its number in the list
  GridRange points = {};                    // kLaunch
  std::vector<Operand> operands = {};
  // Whether it waits for a call since the last barrier of its part, and so has one in front.
  bool needs_barrier = false;

  // Whether it names its operands by address, and so is another call where slots are elsewhere.
  bool HasAddresses() const;
  // "cannot launch the kernel softmax", for an error's message.
  std::string WhatFailed() const;
};

// Where the slots of a list are.
struct Places {
  absl::Span<char* const> addresses;  // where slot i begins
  void* table = nullptr;              // the same on the device; null: no kernel takes it
};

// `signal`: an event that the call signals when it has ended; null: none.
ze_result_t Append(const Context& context, const Call& call, const Places& places,
                   ze_command_list_handle_t list, ze_event_handle_t signal);

}  // namespace kiln::drivers::level_zero

#endif  // KILN_DRIVERS_LEVEL_ZERO_CALL_H_
