// One command of a list, in the form in which it is appended to a Level Zero command list.
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
  // A kernel argument, a copy's destination or source, or a fill's destination.
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
  // Whether it depends on a call since the last barrier of its part, so that it needs a barrier
  // before it.
  bool needs_barrier = false;

  // Whether it names its operands by address, so that it changes when slots have other buffers.
  bool HasAddresses() const;
  // For an error's message: "cannot launch the kernel softmax".
  std::string WhatFailed() const;
};

// The addresses of a list's slots.
struct Places {
  absl::Span<char* const> addresses;  // the start of slot i
  void* table = nullptr;              // the slot table on the device; null: no kernel uses it
};

// `signal`: an event that the call signals when it has ended; null: none.
ze_result_t Append(const Context& context, const Call& call, const Places& places,
                   ze_command_list_handle_t list, ze_event_handle_t signal);

}  // namespace kiln::drivers::level_zero

#endif  // KILN_DRIVERS_LEVEL_ZERO_CALL_H_
