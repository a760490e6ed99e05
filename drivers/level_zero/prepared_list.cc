#include "drivers/level_zero/prepared_list.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace kiln::drivers::level_zero {

absl::StatusOr<std::shared_ptr<Program>> Program::Make(std::shared_ptr<Context> context,
                                                       CommandList list) {
  auto needs = CheckCommandList(list);
  if (!needs.ok()) return needs.status();
  std::shared_ptr<Program> program(new Program(std::move(context), list.num_slots));
  program->mirror_ = HostMirror(&list);
  if (const size_t bytes = program->mirror_.bytes(); bytes > 0) {
    const auto memory = program->context_->AllocateHostMemory(bytes);
    if (!memory.ok()) return memory.status();
    program->mirror_.Place(static_cast<char*>(*memory));
  }
  program->needs_ = *std::move(needs);
  program->num_commands_ = list.commands.size();
  program->recorded_.num_slots = static_cast<size_t>(list.num_slots);
  program->parts_.emplace_back();
  for (size_t i = 0; i < list.commands.size(); ++i) {
    absl::Status status =
        std::visit([&](const auto& command) { return program->Add(command, i); }, list.commands[i]);
    if (!status.ok())
      return absl::Status(status.code(), absl::StrCat("command ", i, ": ", status.message()));
  }
  program->EndPart(Part::Then::kNothing, 0, 0);
  // Made here, so that Prepare fails if there is no memory for it.
  auto recording =
      Recording::Make(program->context_, program->recorded_, Recording::Order::kBySlots);
  if (!recording.ok()) return recording.status();
  program->recordings_.push_back(*std::move(recording));
  return program;
}

Program::~Program() {
  if (mirror_.memory() != nullptr) context_->ReleaseMemory(mirror_.memory());
}

absl::Status Program::Add(const LaunchCommand& launch, size_t command) {
  const auto* kernel = dynamic_cast<const LevelZeroKernel*>(launch.kernel);
  if (kernel == nullptr || kernel->context() != context_.get()) {
    return absl::InvalidArgumentError(absl::StrCat("the kernel ", launch.kernel->image().name,
                                                   " was not loaded by this Level Zero device"));
  }
  if (kernel->image().takes_slot_table) recorded_.wants_table = true;
  AddCall({.kind = Call::Kind::kLaunch,
           .kernel = kernel,
           .command = command,
           .points = PointsOf(launch)},
          AccessesOf(launch));
  return absl::OkStatus();
}

absl::Status Program::Add(const CopyCommand& copy, size_t command) {
  const auto& [from, to] = copy;
  if (to.bytes == 0) return absl::OkStatus();
  AddCall({.kind = Call::Kind::kCopy, .bytes = static_cast<size_t>(to.bytes), .command = command},
          {{to, Access::kWrite}, {from, Access::kRead}});
  return absl::OkStatus();
}

absl::Status Program::Add(const FillCommand& fill, size_t command) {
  const SlotRange& to = fill.destination;
  if (to.bytes == 0) return absl::OkStatus();
  AddCall({.kind = Call::Kind::kFill,
           .value = fill.value,
           .bytes = static_cast<size_t>(to.bytes),
           .command = command},
          {{to, Access::kWrite}});
  return absl::OkStatus();
}

absl::Status Program::Add(const SignalCommand& signal, size_t command) {
  EndPart(Part::Then::kSignal, signal.signal, command);
  return absl::OkStatus();
}

absl::Status Program::Add(const WaitCommand& wait, size_t command) {
  EndPart(Part::Then::kWait, wait.signal, command);
  return absl::OkStatus();
}

void Program::AddCall(Call call, absl::Span<const RangeAccess> accesses) {
  for (const auto& [range, access] : accesses) {
    call.operands.push_back({range.slot, range.offset});
    if (access != Access::kRead) written_[range.slot] = true;
  }
  std::vector<Section>& sections = recorded_.sections;
  const bool begins = sections.size() == parts_.back().begin ||
                      sections.back().has_addresses != call.HasAddresses();
  if (begins) BeginSection(call.HasAddresses());
  const std::vector<int> dependencies = dependencies_.Add(accesses);
  // One barrier serves all calls before it.
  call.needs_barrier = !dependencies.empty() && dependencies.back() >= calls_before_barrier_;
  if (call.needs_barrier)
    calls_before_barrier_ = static_cast<int>(sections.back().end - sections.back().begin);
  recorded_.calls.push_back(std::move(call));
  sections.back().end = recorded_.calls.size();
}

// Each section begins with a barrier.
void Program::BeginSection(bool has_addresses) {
  const size_t at = recorded_.calls.size();
  recorded_.sections.push_back({at, at, has_addresses});
  dependencies_ = Dependencies(static_cast<int>(written_.size()));
  calls_before_barrier_ = 0;
}

void Program::EndPart(Part::Then then, int signal, size_t command) {
  Part& part = parts_.back();
  part.end = recorded_.sections.size();
  part.then = then;
  part.signal = signal;
  part.command = command;
  parts_.emplace_back();
  parts_.back().begin = parts_.back().end = recorded_.sections.size();
}

// Whether two slots, one of which is written, have the same memory. The commands then have
// dependencies that their slots do not show.
bool Program::SlotsOverlap(absl::Span<char* const> addresses) const {
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

// Returns an unused recording with these addresses; else any unused one; else a new one. A timed
// recording is used only once.
absl::StatusOr<std::shared_ptr<Recording>> Program::Take(absl::Span<char* const> addresses,
                                                         Recording::Order order) {
  std::shared_ptr<Recording> taken;
  for (const auto& recording : recordings_) {
    if (recording->order() != order || recording->in_use) continue;
    if (taken == nullptr || recording->Has(addresses)) taken = recording;
  }
  if (taken == nullptr) {
    auto made = Recording::Make(context_, recorded_, order);
    if (!made.ok()) return made.status();
    taken = *std::move(made);
    if (order != Recording::Order::kTimed) recordings_.push_back(taken);
  }
  taken->in_use = true;
  return taken;
}

Enqueued Program::Enqueue(absl::Span<char* const> addresses, absl::Span<Buffer* const> buffers,
                          const SubmitOptions& options, const SteadyClock& now,
                          const OnSignal& on_signal) {
  Enqueued enqueued;
  absl::Status& status = enqueued.result.status;
  const bool timed = options.time_commands;
  if (timed) enqueued.result.command_seconds.assign(num_commands_, 0);
  const Recording::Order order = timed                     ? Recording::Order::kTimed
                                 : SlotsOverlap(addresses) ? Recording::Order::kAll
                                                           : Recording::Order::kBySlots;
  auto recording = Take(addresses, order);
  status = recording.status();
  if (!status.ok()) return enqueued;
  enqueued.recording = *std::move(recording);
  const HostMirror::Run run{buffers, now, &enqueued.result.command_seconds};
  const auto await = [this] { return AwaitLast(); };
  for (size_t i = 0; i < parts_.size(); ++i) {
    const Part& part = parts_[i];
    status = mirror_.Before(i, run, await);
    if (status.ok()) status = Execute(part, addresses, &enqueued);
    if (status.ok()) status = mirror_.After(i, run, await);
    if (!status.ok()) break;
    if (part.then == Part::Then::kSignal) {
      on_signal(enqueued.fences.empty() ? nullptr : enqueued.fences.back(), part.signal);
    } else if (part.then == Part::Then::kWait) {
      const SteadyTime before = now();
      status = options.group->Wait(part.signal);
      if (timed) enqueued.result.command_seconds[part.command] = Seconds(before, now());
      if (!status.ok()) break;
    }
  }
  if (!status.ok()) enqueued.recording->Forget();
  return enqueued;
}

absl::Status Program::Execute(const Part& part, absl::Span<char* const> addresses,
                              Enqueued* enqueued) {
  if (part.begin == part.end) return absl::OkStatus();
  std::vector<ze_command_list_handle_t> lists;
  absl::Status status = enqueued->recording->Prepare(part.begin, part.end, addresses, &lists);
  if (!status.ok()) return status;
  auto fence = context_->TakeFence();
  if (!fence.ok()) return fence.status();
  const ze_result_t code = context_->ze().CommandQueueExecuteCommandLists(
      context_->queue(), static_cast<uint32_t>(lists.size()), lists.data(), fence->get());
  if (code != ZE_RESULT_SUCCESS) return context_->Failure("cannot execute a command list", code);
  enqueued->fences.push_back(std::make_shared<Fence>(*std::move(fence)));
  if (mirror_.bytes() > 0) last_ = enqueued->fences.back();
  return absl::OkStatus();
}

absl::Status Program::AwaitLast() {
  const auto last = std::exchange(last_, nullptr);
  return last == nullptr ? absl::OkStatus() : context_->Await(*last);
}

void Program::AddCallSeconds(const Recording& recording,
                             std::vector<double>* command_seconds) const {
  const std::vector<double> seconds = recording.CallSeconds();
  for (size_t i = 0; i < seconds.size(); ++i)
    (*command_seconds)[recorded_.calls[i].command] += seconds[i];
}

}  // namespace kiln::drivers::level_zero
