// A list's calls as closed command lists, which are executed again and again; with a slot table of
// its own (drivers/interface/kernel_image.h), so that other buffers need no other recording.
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

// The calls [begin, end), which are one command list: either none of them has addresses, or all
// have.
struct Section {
  size_t begin = 0;
  size_t end = 0;
  bool has_addresses = false;
};

// What is recorded of a list: it outlives its recordings.
struct Recorded {
  std::vector<Call> calls;
  std::vector<Section> sections;
  size_t num_slots = 0;
  bool wants_table = false;
};

// Used by the device's submission thread, except for `in_use`. While it is in use its lists are
// with the device, and nothing of it may change: Level Zero executes a list once at a time.
class Recording {
 public:
  // How much of the order of calls is kept: what their slots say, or all of it, since slots share
  // memory; or all of it with an event for each call, which tells how long it took.
  enum class Order : uint8_t { kBySlots, kAll, kTimed };

  static absl::StatusOr<std::unique_ptr<Recording>> Make(std::shared_ptr<Context> context,
                                                         const Recorded& recorded, Order order);
  ~Recording();

  Order order() const { return order_; }
  // Whether the slot table and all addresses are these already.
  bool Has(absl::Span<char* const> addresses) const;

  // Adds the command lists of the sections [begin, end) to `lists`, in front of them one that
  // writes the slot table, if it has others and this is the list's first part. Sections whose
  // addresses changed are recorded again.
  absl::Status Prepare(size_t begin, size_t end, absl::Span<char* const> addresses,
                       std::vector<ze_command_list_handle_t>* lists);

  // What was prepared may not have been executed.
  void Forget() { written_.clear(); }

  // Of a timed one, when all has ended: the seconds of each call; 0 if the device does not say.
  std::vector<double> CallSeconds() const;

  // Set by who takes it, cleared when what was executed has ended.
  std::atomic<bool> in_use = false;

 private:
  struct List {
    ze_command_list_handle_t handle = nullptr;
    bool is_closed = false;
    std::vector<char*> addresses;  // of all slots, as its calls have them
  };

  Recording(std::shared_ptr<Context> context, const Recorded& recorded, Order order)
      : context_(std::move(context)),
        recorded_(recorded),
        order_(order),
        lists_(recorded.sections.size()) {}
  absl::Status MakeTable();
  absl::Status MakeEvents();
  absl::Status Record(const Section& section, absl::Span<char* const> addresses, List* list);
  absl::Status Fail(const char* what, ze_result_t code) { return context_->Failure(what, code); }

  const std::shared_ptr<Context> context_;
  const Recorded& recorded_;
  const Order order_;
  std::vector<List> lists_;  // by section
  // The table on the device, what it is written from, and the list that copies one to the other.
  void* table_ = nullptr;
  char** table_source_ = nullptr;
  ze_command_list_handle_t write_table_ = nullptr;
  std::vector<char*> written_;  // empty: nobody knows what
  // kTimed
  ze_event_pool_handle_t pool_ = nullptr;
  std::vector<ze_event_handle_t> events_;  // by call
};

}  // namespace kiln::drivers::level_zero

#endif  // KILN_DRIVERS_LEVEL_ZERO_RECORDING_H_
