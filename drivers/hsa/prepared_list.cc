#include "drivers/hsa/prepared_list.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "drivers/hsa/error.h"

namespace kiln::drivers::hsa {
namespace {

// Size of the device memory filled with one byte value; fills are copied from it piece by piece.
constexpr int64_t kPatternBytes = 4 << 20;

int64_t PiecesOf(int64_t bytes) { return (bytes + kPatternBytes - 1) / kPatternBytes; }

}  // namespace

absl::StatusOr<std::shared_ptr<Program>> Program::Make(std::shared_ptr<Context> context,
                                                       CommandList list) {
  auto needs = CheckCommandList(list);
  if (!needs.ok()) return needs.status();
  std::shared_ptr<Program> program(new Program(std::move(context), list.num_slots));
  program->mirror_ = HostMirror(&list);
  if (absl::Status status = program->MakeMirror(); !status.ok()) return status;
  program->needs_ = *std::move(needs);
  program->num_commands_ = list.commands.size();
  for (size_t i = 0; i < list.commands.size(); ++i) {
    absl::Status status =
        std::visit([&](const auto& command) { return program->Add(command, i); }, list.commands[i]);
    if (!status.ok())
      return absl::Status(status.code(), absl::StrCat("command ", i, ": ", status.message()));
  }
  return program;
}

absl::Status Program::MakeMirror() {
  const auto bytes = static_cast<int64_t>(mirror_.bytes());
  if (bytes == 0) return absl::OkStatus();
  mirror_.Place(static_cast<char*>(context_->AllocateHostMemory(bytes)));
  if (mirror_.memory() != nullptr) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("the host does not have ", bytes, " bytes left for copies between devices"));
}

Program::~Program() {
  if (mirror_.memory() != nullptr) context_->ReleaseMemory(mirror_.memory());
  for (const auto& [value, pattern] : patterns_) context_->ReleaseMemory(pattern);
}

absl::Status Program::Add(const LaunchCommand& launch, size_t command) {
  const auto* kernel = dynamic_cast<const HsaKernel*>(launch.kernel);
  if (kernel == nullptr || kernel->context() != context_.get()) {
    return absl::InvalidArgumentError(absl::StrCat("the kernel ", launch.kernel->image().name,
                                                   " was not loaded by this HSA device"));
  }
  if (steps_.empty() || steps_.back().kind != Step::Kind::kLaunches) {
    steps_.push_back(
        {.kind = Step::Kind::kLaunches, .begin = launches_.size(), .end = launches_.size()});
    dependencies_ = Dependencies(static_cast<int>(written_.size()));
    last_after_all_ = 0;
  }
  Step& step = steps_.back();
  const std::vector<RangeAccess> accesses = AccessesOf(launch);
  const std::vector<int> before = dependencies_.Add(accesses);
  const size_t number = step.end - step.begin;
  // Launches before the last one with a barrier bit have ended when that one begins.
  const bool after_all =
      number == 0 || (!before.empty() && static_cast<size_t>(before.back()) >= last_after_all_);
  if (after_all) last_after_all_ = number;
  launches_.push_back({.kernel = kernel,
                       .arguments = launch.arguments,
                       .points = PointsOf(launch),
                       .after_all = after_all,
                       .command = command});
  ++step.end;
  for (const auto& [range, access] : accesses) {
    if (access != Access::kRead) written_[range.slot] = true;
  }
  return absl::OkStatus();
}

absl::Status Program::Add(const CopyCommand& copy, size_t command) {
  if (copy.source.bytes == 0) return absl::OkStatus();
  written_[copy.destination.slot] = true;
  steps_.push_back(
      {.kind = Step::Kind::kCopy, .from = copy.source, .to = copy.destination, .command = command});
  return absl::OkStatus();
}

absl::Status Program::Add(const FillCommand& fill, size_t command) {
  if (fill.destination.bytes == 0) return absl::OkStatus();
  written_[fill.destination.slot] = true;
  steps_.push_back(
      {.kind = Step::Kind::kFill, .to = fill.destination, .value = fill.value, .command = command});
  char*& pattern = patterns_[fill.value];
  if (pattern != nullptr) return absl::OkStatus();
  pattern = static_cast<char*>(context_->AllocateMemory(kPatternBytes));
  if (pattern == nullptr) {
    patterns_.erase(fill.value);
    if (absl::Status lost = context_->Health(); !lost.ok()) return lost;
    return absl::ResourceExhaustedError(
        absl::StrCat("the device does not have ", kPatternBytes, " bytes left to fill from"));
  }
  const hsa_status_t code = context_->hsa().amd_memory_fill(
      pattern, 0x01010101U * fill.value, static_cast<size_t>(kPatternBytes) / sizeof(uint32_t));
  return ToStatus(context_->hsa(), "cannot write the pattern of a fill", code);
}

absl::Status Program::Add(const SignalCommand& signal, size_t command) {
  steps_.push_back({.kind = Step::Kind::kSignal, .signal = signal.signal, .command = command});
  return absl::OkStatus();
}

absl::Status Program::Add(const WaitCommand& wait, size_t command) {
  steps_.push_back({.kind = Step::Kind::kWait, .signal = wait.signal, .command = command});
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Replay>> Program::TakeReplay() {
  {
    absl::MutexLock lock(&mutex_);
    if (!idle_.empty()) {
      auto replay = std::move(idle_.back());
      idle_.pop_back();
      return replay;
    }
  }
  return Replay::Make(context_, launches_, static_cast<int>(written_.size()));
}

void Program::GiveBack(std::unique_ptr<Replay> replay) {
  if (replay == nullptr) return;
  absl::MutexLock lock(&mutex_);
  idle_.push_back(std::move(replay));
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

// One submission being enqueued.
class Program::Run {
 public:
  Run(Program& program, absl::Span<char* const> addresses, bool timed, Enqueued* enqueued)
      : program_(program),
        context_(*program.context_),
        addresses_(addresses),
        timed_(timed),
        in_order_(timed || program.SlotsOverlap(addresses)),
        enqueued_(*enqueued) {}

  absl::Status Do(const Step& step) {
    switch (step.kind) {
      case Step::Kind::kLaunches:
        return DoLaunches(step);
      case Step::Kind::kCopy:
        return DoCopies(step, addresses_[step.from.slot] + step.from.offset, step.to.bytes, 1,
                        SourceOf(step), AgentOf(step.to.slot));
      case Step::Kind::kFill:
        return DoCopies(step, program_.patterns_.at(step.value),
                        std::min(kPatternBytes, step.to.bytes), PiecesOf(step.to.bytes),
                        context_.agent(), context_.agent());
      case Step::Kind::kSignal:
      case Step::Kind::kWait:
        return absl::OkStatus();
    }
    return absl::OkStatus();
  }

  // Pushes pending packets, followed by a barrier whose signal becomes 0 when everything has ended.
  absl::StatusOr<Signal> End() {
    auto signal = Take(1);
    if (!signal.ok()) return signal;
    pending_.push_back(BarrierPacket(copied_, signal->get()));
    copied_ = {};
    if (absl::Status status = Flush(); !status.ok()) return status;
    return signal;
  }
  absl::Status Await() {
    auto end = End();
    return end.ok() ? context_.Await(end->get()) : end.status();
  }
  absl::Status Flush() {
    absl::Status status = context_.Push(pending_);
    pending_.clear();
    return status;
  }

 private:
  absl::StatusOr<Signal> Take(hsa_signal_value_t value) {
    const auto taken = context_.TakeSignal(value);
    if (!taken.ok()) return taken.status();
    return Signal(&context_, *taken);
  }

  hsa_agent_t AgentOf(int slot) const {
    return program_.needs_.IsHost(slot) ? context_.host() : context_.agent();
  }
  // A copy is made by one of its two agents; choose the device, which can access host slots as
  // well.
  hsa_agent_t SourceOf(const Step& copy) const {
    return program_.needs_.IsHost(copy.to.slot) ? context_.agent() : AgentOf(copy.from.slot);
  }

  absl::Status DoLaunches(const Step& step) {
    if (copied_.handle != 0) pending_.push_back(BarrierPacket(copied_, {}));
    copied_ = {};
    const auto packets = enqueued_.replay->packets().subspan(step.begin, step.end - step.begin);
    for (size_t i = 0; i < packets.size(); ++i) {
      pending_.push_back(packets[i]);
      hsa_kernel_dispatch_packet_t& packet = pending_.back().dispatch;
      if (in_order_) packet.header |= 1 << HSA_PACKET_HEADER_BARRIER;
      if (!timed_) continue;
      auto signal = Take(1);
      if (!signal.ok()) return signal.status();
      packet.completion_signal = signal->get();
      enqueued_.timed.push_back(
          {.command = program_.launches_[step.begin + i].command, .signal = *std::move(signal)});
    }
    return absl::OkStatus();
  }

  // Copies `bytes` from `from`, `pieces` times, after everything before it.
  absl::Status DoCopies(const Step& step, const char* from, int64_t bytes, int64_t pieces,
                        hsa_agent_t from_agent, hsa_agent_t to_agent) {
    if (copied_.handle == 0) {
      auto before = End();
      if (!before.ok()) return before.status();
      copied_ = before->get();
      enqueued_.between.push_back(*std::move(before));
    }
    auto done = Take(pieces);
    if (!done.ok()) return done.status();
    char* to = addresses_[step.to.slot] + step.to.offset;
    for (int64_t begin = 0; begin < step.to.bytes; begin += bytes) {
      const hsa_status_t code = context_.hsa().amd_memory_async_copy(
          to + begin, to_agent, from, from_agent,
          static_cast<size_t>(std::min(bytes, step.to.bytes - begin)), 1, &copied_, done->get());
      if (code == HSA_STATUS_SUCCESS) continue;
      // Copies already started use the buffers.
      absl::Status lost = context_.Await(done->get(), pieces - begin / bytes + 1);
      if (!lost.ok()) return lost;
      return ToStatus(context_.hsa(), absl::StrCat("cannot copy for command ", step.command), code);
    }
    copied_ = done->get();
    if (timed_) {
      enqueued_.timed.push_back({.command = step.command,
                                 .signal = *std::move(done),
                                 .copies = static_cast<int>(pieces)});
    } else {
      enqueued_.between.push_back(*std::move(done));
    }
    return absl::OkStatus();
  }

  Program& program_;
  Context& context_;
  const absl::Span<char* const> addresses_;
  const bool timed_;
  const bool in_order_;
  Enqueued& enqueued_;
  std::vector<Packet> pending_;  // to be pushed together
  hsa_signal_t copied_ = {};     // of the last copy, if nothing was pushed after it
};

Enqueued Program::Enqueue(absl::Span<char* const> addresses, absl::Span<Buffer* const> buffers,
                          const SubmitOptions& options, const SteadyClock& now,
                          const OnSignal& on_signal) {
  Enqueued enqueued;
  absl::Status& status = enqueued.result.status;
  const bool timed = options.time_commands;
  if (timed) {
    context_->StartTiming();
    enqueued.result.command_seconds.assign(num_commands_, 0);
  }
  auto replay = TakeReplay();
  if (!replay.ok()) {
    status = replay.status();
    return enqueued;
  }
  enqueued.replay = *std::move(replay);
  enqueued.replay->Bind(addresses);
  Run run(*this, addresses, timed, &enqueued);
  const HostMirror::Run copied{buffers, now, &enqueued.result.command_seconds};
  const auto await = [&run] { return run.Await(); };
  size_t part = 0;
  status = mirror_.Before(part, copied, await);
  for (const Step& step : steps_) {
    const bool ends_part = step.kind == Step::Kind::kSignal || step.kind == Step::Kind::kWait;
    if (status.ok()) status = ends_part ? mirror_.After(part, copied, await) : run.Do(step);
    if (status.ok() && step.kind == Step::Kind::kSignal) {
      auto before = run.End();
      status = before.status();
      if (status.ok()) on_signal(*std::move(before), step.signal);
    } else if (status.ok() && step.kind == Step::Kind::kWait) {
      // The thread that raises the signal may wait for what comes before the wait.
      status = run.Flush();
      const SteadyTime before = now();
      if (status.ok()) status = options.group->Wait(step.signal);
      if (timed) enqueued.result.command_seconds[step.command] = Seconds(before, now());
    }
    if (status.ok() && ends_part) status = mirror_.Before(++part, copied, await);
    if (!status.ok()) return enqueued;
  }
  if (status.ok()) status = mirror_.After(part, copied, await);
  if (!status.ok()) return enqueued;
  auto end = run.End();
  status = end.status();
  if (end.ok()) enqueued.end = *std::move(end);
  return enqueued;
}

}  // namespace kiln::drivers::hsa
