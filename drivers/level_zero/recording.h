// A list's calls as closed command lists, which are executed repeatedly, with their own slot table
// (drivers/interface/kernel_image.h), so that other buffers need no new recording.
#ifndef KILN_DRIVERS_LEVEL_ZERO_RECORDING_H_
#define KILN_DRIVERS_LEVEL_ZERO_RECORDING_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "drivers/level_zero/call.h"
#include "drivers/level_zero/context.h"

namespace kiln::drivers::level_zero {

// The calls [begin, end), which are one command list: either all of them have addresses, or none.
struct Section {
  size_t begin = 0;
  size_t end = 0;
  bool has_addresses = false;
};

// The input of recordings; outlives them.
struct Recorded {
  std::vector<Call> calls;
  std::vector<Section> sections;
  size_t num_slots = 0;
  bool wants_table = false;
};

// Used by the device's submission thread only, except `in_use`. While it is in use, its lists are
// on the device and it must not change: Level Zero allows one execution of a list at a time.
class Recording {
 public:
  // The order kept between calls: by their slots; or all of it, because slots share memory; or all
  // of it with an event for each call, which measures its time.
  enum class Order : uint8_t { kBySlots, kAll, kTimed };

  static absl::StatusOr<std::unique_ptr<Recording>> Make(std::shared_ptr<Context> context,
                                                         const Recorded& recorded, Order order);
  ~Recording();

  Order order() const { return order_; }
  // Whether the slot table and all recorded addresses already equal these.
  bool Has(absl::Span<char* const> addresses) const;

  // Appends the command lists of the sections [begin, end) to `lists`. If this is the list's first
  // part and the slot table changes, a list that writes the table comes first. Sections whose
  // addresses changed are recorded again. Requires: it is in use; one address for each slot.
  absl::Status Prepare(size_t begin, size_t end, absl::Span<char* const> addresses,
                       std::vector<ze_command_list_handle_t>* lists);

  // Call this if prepared lists may not have been executed.
  void Forget() { written_.clear(); }

  // For a timed recording that has ended: the seconds of each call; 0 if the device does not report
  // them.
  std::vector<double> CallSeconds() const;

  // Set when it is taken, cleared when the executed work has ended.
  std::atomic<bool> in_use = false;

 private:
  struct List {
    ze_command_list_handle_t handle = nullptr;
    bool is_closed = false;
    std::vector<char*> addresses;  // the recorded address of each slot
  };

  Recording(std::shared_ptr<Context> context, const Recorded& recorded, Order order)
      : context_(std::move(context)),
        recorded_(recorded),
        order_(order),
        lists_(recorded.sections.size()) {}
  // Checks that each section has a list, and that what is recorded is of all slots.
  void Validate() const;
  absl::Status MakeTable();
  absl::Status MakeEvents();
  absl::Status Record(const Section& section, absl::Span<char* const> addresses, List* list);
  absl::Status Fail(const char* what, ze_result_t code) { return context_->Failure(what, code); }

  const std::shared_ptr<Context> context_;
  const Recorded& recorded_;
  const Order order_;
  std::vector<List> lists_;  // by section
  // The table on the device, its source in host memory, and the list that copies it.
  void* table_ = nullptr;
  char** table_source_ = nullptr;
  ze_command_list_handle_t write_table_ = nullptr;
  std::vector<char*> written_;  // the table's content; empty: unknown
  // Only for kTimed.
  ze_event_pool_handle_t pool_ = nullptr;
  std::vector<ze_event_handle_t> events_;  // by call
};

}  // namespace kiln::drivers::level_zero

#endif  // KILN_DRIVERS_LEVEL_ZERO_RECORDING_H_
