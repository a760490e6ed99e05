#include "drivers/common/queued_device/list_program.h"

#include <algorithm>
#include <variant>

#include "absl/strings/str_cat.h"
#include "proto/check/check.h"

namespace kiln::drivers {

ListProgram::~ListProgram() {
  if (mirror_.memory() != nullptr) owner_->ReleaseHostMemory(mirror_.memory());
}

absl::Status ListProgram::Build(CommandList list, HostSlots host_slots) {
  KILN_CHECK(parts_.empty()) << "a list is built twice";
  KILN_CHECK_EQ(needs_.slot_bytes.size(), list.num_slots);
  if (host_slots == HostSlots::kMirrored) {
    mirror_ = HostMirror(&list);
    if (absl::Status status = PlaceMirror(); !status.ok()) return status;
  }
  num_commands_ = list.commands.size();
  parts_.emplace_back();
  for (size_t i = 0; i < list.commands.size(); ++i) {
    absl::Status status =
        std::visit([&](const auto& command) { return Take(command, i); }, list.commands[i]);
    if (!status.ok())
      return absl::Status(status.code(), absl::StrCat("command ", i, ": ", status.message()));
  }
  Close(Part::Then::kNothing, 0, 0);
  parts_.pop_back();
  // As much work as building it.
  KILN_VALIDATE(*this, 1);
  return absl::OkStatus();
}

void ListProgram::Validate() const {
  KILN_CHECK(!parts_.empty());
  KILN_CHECK_EQ(written_.size(), needs_.slot_bytes.size());
  for (size_t i = 0; i < parts_.size(); ++i) {
    const Part& part = parts_[i];
    KILN_CHECK_EQ(part.begin, i == 0 ? 0 : parts_[i - 1].end);
    KILN_CHECK_LE(part.begin, part.end);
    KILN_CHECK_EQ(part.then == Part::Then::kNothing, i + 1 == parts_.size()) << "part " << i;
    if (part.then == Part::Then::kNothing) continue;
    KILN_CHECK(part.signal >= 0 && part.signal < needs_.signals) << part.signal;
    KILN_CHECK_LT(part.command, num_commands_);
  }
}

absl::Status ListProgram::PlaceMirror() {
  if (mirror_.bytes() == 0) return absl::OkStatus();
  const auto memory = owner_->AllocateHostMemory(mirror_.bytes());
  if (memory.ok()) mirror_.Place(*memory);
  return memory.status();
}

absl::Status ListProgram::Take(const LaunchCommand& launch, size_t command) {
  const auto* kernel = dynamic_cast<const QueuedKernel*>(launch.kernel);
  if (kernel != nullptr && kernel->owner() == owner_.get()) return TakeCall({launch, command});
  return absl::InvalidArgumentError(
      absl::StrCat("the kernel ", launch.kernel->image().name,
                   " was not loaded by this device, or was lost with it"));
}

absl::Status ListProgram::Take(const CopyCommand& copy, size_t command) {
  return copy.destination.bytes == 0 ? absl::OkStatus() : TakeCall({copy, command});
}

absl::Status ListProgram::Take(const FillCommand& fill, size_t command) {
  return fill.destination.bytes == 0 ? absl::OkStatus() : TakeCall({fill, command});
}

absl::Status ListProgram::TakeCall(ListCall call) {
  for (const auto& [range, access] : call.operands) {
    KILN_CHECK_LT(range.slot, written_.size());
    if (access != Access::kRead) written_[range.slot] = true;
  }
  return Add(std::move(call));
}

absl::Status ListProgram::Take(const SignalCommand& signal, size_t command) {
  Close(Part::Then::kSignal, signal.signal, command);
  return absl::OkStatus();
}

absl::Status ListProgram::Take(const WaitCommand& wait, size_t command) {
  Close(Part::Then::kWait, wait.signal, command);
  return absl::OkStatus();
}

void ListProgram::Close(Part::Then then, int signal, size_t command) {
  Part& part = parts_.back();
  part.end = EndPart();
  KILN_CHECK_GE(part.end, part.begin) << "part " << parts_.size() - 1;
  part.then = then;
  part.signal = signal;
  part.command = command;
  const size_t end = part.end;
  parts_.push_back({.begin = end, .end = end});
}

bool ListProgram::SlotsOverlap(absl::Span<char* const> addresses) const {
  KILN_CHECK_EQ(addresses.size(), written_.size());
  if (std::find(written_.begin(), written_.end(), true) == written_.end()) return false;
  std::vector<size_t> order(addresses.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return addresses[a] < addresses[b]; });
  // Buffers are equal or disjoint, so equal ones are neighbours.
  for (size_t i = 0; i < order.size();) {
    size_t end = i;
    bool written = false;
    for (; end < order.size() && addresses[order[end]] == addresses[order[i]]; ++end)
      written = written || written_[order[end]];
    if (end - i > 1 && written) return true;
    i = end;
  }
  return false;
}

void ListRun::EnqueueAll(const ListProgram& program, const SteadyClock& now, OnSignal on_signal) {
  KILN_CHECK_EQ(slots.size(), program.num_slots());
  KILN_CHECK_EQ(buffers.size(), slots.size());
  KILN_CHECK(!program.needs().needs_group || options.group != nullptr);
  absl::Status& status = result.status;
  if (options.time_commands) result.command_seconds.assign(program.num_commands(), 0);
  const HostMirror::Run copies{buffers, now, &result.command_seconds};
  const auto await = [this] { return AwaitEnqueued(); };
  status = Begin();
  for (size_t i = 0; i < program.parts().size() && status.ok(); ++i) {
    status = program.mirror().Before(i, copies, await);
    if (status.ok()) status = Enqueue(i);
    if (status.ok()) status = program.mirror().After(i, copies, await);
    if (status.ok()) status = EndPart(program.parts()[i], now, on_signal);
  }
  if (status.ok()) status = End();
  if (options.time_commands) KILN_CHECK_EQ(result.command_seconds.size(), program.num_commands());
}

absl::Status ListRun::EndPart(const ListProgram::Part& part, const SteadyClock& now,
                              OnSignal on_signal) {
  if (part.then == ListProgram::Part::Then::kSignal) {
    auto before = Mark();
    if (before.ok()) on_signal(*std::move(before), part.signal);
    return before.status();
  }
  if (part.then == ListProgram::Part::Then::kNothing) return absl::OkStatus();
  // The thread that raises the signal may wait for what comes before the wait.
  if (absl::Status status = Flush(); !status.ok()) return status;
  const SteadyTime before = now();
  absl::Status status = options.group->Wait(part.signal);
  if (options.time_commands) result.command_seconds[part.command] = Seconds(before, now());
  return status;
}

}  // namespace kiln::drivers
