// A call as it is appended to a Level Zero command list.
#ifndef KILN_DRIVERS_LEVEL_ZERO_CALL_H_
#define KILN_DRIVERS_LEVEL_ZERO_CALL_H_

#include "absl/types/span.h"
#include "drivers/common/queued_device/list_call.h"
#include "drivers/level_zero/context.h"
#include "drivers/level_zero/kernel.h"

namespace kiln::drivers::level_zero {

struct Call : ListCall {
  // Whether it depends on a call since the last barrier of its part, so that it needs a barrier
  // before it.
  bool needs_barrier = false;
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
