#include "drivers/common/reissue.h"

#include <utility>

#include "proto/check/check.h"

namespace kiln::drivers {
namespace {

// Issues one command according to its type.
class Visitor {
 public:
  Visitor(absl::Span<Buffer* const> slots, SignalGroup* group, CommandIssuer& issuer)
      : slots_(slots), group_(group), issuer_(issuer) {}

  absl::Status operator()(const LaunchCommand& launch) {
    arguments_.clear();
    for (const SlotRange& range : launch.arguments) arguments_.push_back(Bind(range));
    return issuer_.Launch(*launch.kernel, arguments_);
  }
  absl::Status operator()(const CopyCommand& copy) {
    return issuer_.Copy(Bind(copy.source), Bind(copy.destination));
  }
  absl::Status operator()(const FillCommand& fill) {
    return issuer_.Fill(Bind(fill.destination), fill.value);
  }
  absl::Status operator()(const SignalCommand& command) {
    return issuer_.Signal(*group_, command.signal);
  }
  absl::Status operator()(const WaitCommand& command) {
    return issuer_.Wait(*group_, command.signal);
  }

 private:
  BoundRange Bind(const SlotRange& range) const {
    KILN_DCHECK_LT(range.slot, slots_.size());
    return {slots_[range.slot], range.offset, range.bytes};
  }

  absl::Span<Buffer* const> slots_;
  SignalGroup* group_;
  CommandIssuer& issuer_;
  std::vector<BoundRange> arguments_;
};

}  // namespace

ReissuedList::ReissuedList(CommandList list, ListNeeds needs)
    : list_(std::move(list)), needs_(std::move(needs)) {
  KILN_CHECK_EQ(needs_.slot_bytes.size(), list_.num_slots);
  KILN_CHECK(needs_.is_host.empty() || needs_.is_host.size() == needs_.slot_bytes.size());
}

SubmitResult ReissuedList::Issue(absl::Span<Buffer* const> slots, const SubmitOptions& options,
                                 CommandIssuer& issuer, const SteadyClock& now) const {
  KILN_CHECK_EQ(slots.size(), needs_.slot_bytes.size());
  KILN_CHECK(!needs_.needs_group || options.group != nullptr) << "a list that signals or waits";
  SubmitResult result;
  const SteadyTime start = now();
  Visitor visitor(slots, options.group.get(), issuer);
  for (const Command& command : list_.commands) {
    // Only reads the clock for each command if the list is timed.
    const SteadyTime before = options.time_commands ? now() : start;
    result.status = std::visit(visitor, command);
    if (!result.status.ok()) break;
    if (options.time_commands) result.command_seconds.push_back(Seconds(before, now()));
  }
  if (options.time_commands && result.status.ok())
    KILN_CHECK_EQ(result.command_seconds.size(), list_.commands.size());
  if (!result.status.ok() && options.group != nullptr) options.group->Abort(result.status);
  result.seconds = Seconds(start, now());
  return result;
}

}  // namespace kiln::drivers
