#include "drivers/hsa/prepared_list.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "drivers/hsa/error.h"
#include "proto/check/check.h"

namespace kiln::drivers::hsa {
namespace {

// Size of the device memory filled with one byte value; fills are copied from it piece by piece.
constexpr int64_t kPatternBytes = 4 << 20;

int64_t PiecesOf(int64_t bytes) { return (bytes + kPatternBytes - 1) / kPatternBytes; }

}  // namespace

absl::StatusOr<std::shared_ptr<Program>> Program::Make(std::shared_ptr<Context> context,
                                                       CommandList list, ListNeeds needs) {
  std::shared_ptr<Program> program(new Program(std::move(context), std::move(needs)));
  if (absl::Status status = program->Build(std::move(list)); !status.ok()) return status;
  // As much work as building it.
  KILN_VALIDATE(*program, 1);
  return program;
}

void Program::Validate() const {
  KILN_CHECK_EQ(parts().back().end, steps_.size());
  size_t launches = 0;
  for (const Step& step : steps_) {
    KILN_CHECK_EQ(step.begin, launches);
    KILN_CHECK_EQ(step.end > step.begin, step.call.kind == ListCall::Kind::kLaunch);
    launches = step.end;
    if (step.call.kind == ListCall::Kind::kFill)
      KILN_CHECK(patterns_.contains(step.call.value)) << "value " << +step.call.value;
    if (step.end > step.begin) KILN_CHECK(launches_[step.begin].after_all);
  }
  KILN_CHECK_EQ(launches, launches_.size());
  for (const auto& [value, pattern] : patterns_) KILN_CHECK(pattern != nullptr) << +value;
}

Program::~Program() {
  for (const auto& [value, pattern] : patterns_) context_->ReleaseMemory(pattern);
}

size_t Program::EndPart() {
  continues_ = false;
  return steps_.size();
}

absl::Status Program::Add(ListCall call) {
  const bool is_launch = call.kind == ListCall::Kind::kLaunch;
  if (!std::exchange(continues_, is_launch) || !is_launch) {
    steps_.push_back({.call = call, .begin = launches_.size(), .end = launches_.size()});
    dependencies_ = Dependencies(static_cast<int>(num_slots()));
    last_after_all_ = 0;
  }
  if (is_launch) AddLaunch(call);
  return call.kind == ListCall::Kind::kFill ? AddPattern(call.value) : absl::OkStatus();
}

void Program::AddLaunch(const ListCall& call) {
  KILN_CHECK(!steps_.empty());
  Step& step = steps_.back();
  const std::vector<int> before = dependencies_.Add(call.operands);
  const size_t number = step.end - step.begin;
  // Launches before the last one with a barrier bit have ended when that one begins.
  const bool after_all =
      number == 0 || (!before.empty() && static_cast<size_t>(before.back()) >= last_after_all_);
  if (after_all) last_after_all_ = number;
  launches_.push_back({call, after_all});
  ++step.end;
}

absl::Status Program::AddPattern(uint8_t value) {
  char*& pattern = patterns_[value];
  if (pattern != nullptr) return absl::OkStatus();
  pattern = static_cast<char*>(context_->AllocateMemory(kPatternBytes));
  if (pattern == nullptr) {
    patterns_.erase(value);
    return context_->NoMemoryFor(kPatternBytes, "to fill from");
  }
  const hsa_status_t code = context_->hsa().amd_memory_fill(
      pattern, 0x01010101U * value, static_cast<size_t>(kPatternBytes) / sizeof(uint32_t));
  return ToStatus(context_->hsa(), "cannot write the pattern of a fill", code);
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
  return Replay::Make(context_, launches_, static_cast<int>(num_slots()));
}

void Program::GiveBack(std::unique_ptr<Replay> replay) {
  if (replay == nullptr) return;
  absl::MutexLock lock(&mutex_);
  for (const std::unique_ptr<Replay>& idle : idle_) KILN_CHECK(idle != nullptr && idle != replay);
  idle_.push_back(std::move(replay));
}

class Program::Run : public ListRun {
 public:
  explicit Run(Program& program) : program_(program), context_(*program.context_) {}

  absl::Status Begin() override {
    if (options.time_commands) context_.StartTiming();
    in_order_ = options.time_commands || program_.SlotsOverlap(slots);
    auto replay = program_.TakeReplay();
    if (!replay.ok()) return replay.status();
    KILN_CHECK(replay_ == nullptr);
    replay_ = *std::move(replay);
    replay_->Bind(slots);
    return absl::OkStatus();
  }

  absl::Status Enqueue(size_t number) override {
    const Part& part = program_.parts()[number];
    for (size_t i = part.begin; i < part.end; ++i) {
      if (absl::Status status = Do(program_.steps_[i]); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::shared_ptr<Completion>> Mark() override {
    auto signal = PushBarrier();
    if (!signal.ok()) return signal.status();
    return std::make_shared<Signal>(*std::move(signal));
  }

  absl::Status Flush() override {
    absl::Status status = context_.Push(pending_);
    pending_.clear();
    return status;
  }

  absl::Status End() override {
    auto end = PushBarrier();
    if (end.ok()) end_ = *std::move(end);
    return end.status();
  }

  absl::Status AwaitEnqueued() override {
    auto end = PushBarrier();
    return end.ok() ? end->Await() : end.status();
  }

  absl::Status AwaitEnd() override { return end_.Await(); }

  void Drain() override {
    const auto signal = context_.TakeSignal(1);
    if (!signal.ok()) return;
    const Packet packet = BarrierPacket({}, signal->get());
    if (context_.Push({&packet, 1}).ok()) context_.Await(signal->get()).IgnoreError();
  }

  double Measure() override {
    for (const Timed& timed : timed_) {
      result.command_seconds[timed.command] +=
          timed.copies > 0 ? timed.copies * context_.CopySeconds(timed.signal.get())
                           : context_.DispatchSeconds(timed.signal.get());
    }
    return 0;
  }

  void Release() override {
    timed_.clear();
    between_.clear();
    end_ = Signal();
    program_.GiveBack(std::move(replay_));
  }

 private:
  // If commands are timed: the signals of kernels and of copies. A copy's pieces, all of about the
  // same size, share one signal.
  struct Timed {
    size_t command = 0;
    Signal signal = {};
    int copies = 0;
  };

  absl::Status Do(const Step& step) {
    const ListCall& call = step.call;
    switch (call.kind) {
      case ListCall::Kind::kLaunch:
        return DoLaunches(step);
      case ListCall::Kind::kCopy: {
        const SlotRange& to = call.operands[0].range;
        const SlotRange& from = call.operands[1].range;
        // A copy is made by one of its two agents; choose the device, which can access host slots
        // as well.
        return DoCopies(call, slots[from.slot] + from.offset, to.bytes, 1,
                        IsHost(to) ? context_.agent() : AgentOf(from), AgentOf(to));
      }
      case ListCall::Kind::kFill:
        break;
    }
    const int64_t bytes = call.operands[0].range.bytes;
    return DoCopies(call, program_.patterns_.at(call.value), std::min(kPatternBytes, bytes),
                    PiecesOf(bytes), context_.agent(), context_.agent());
  }

  // Pushes pending packets, followed by a barrier whose signal becomes 0 when everything has ended.
  absl::StatusOr<Signal> PushBarrier() {
    auto signal = context_.TakeSignal(1);
    if (!signal.ok()) return signal;
    pending_.push_back(BarrierPacket(copied_, signal->get()));
    copied_ = {};
    if (absl::Status status = Flush(); !status.ok()) return status;
    return signal;
  }

  bool IsHost(const SlotRange& range) const { return program_.needs().IsHost(range.slot); }
  hsa_agent_t AgentOf(const SlotRange& range) const {
    return IsHost(range) ? context_.host() : context_.agent();
  }

  absl::Status DoLaunches(const Step& step) {
    if (copied_.handle != 0) pending_.push_back(BarrierPacket(copied_, {}));
    copied_ = {};
    KILN_CHECK_LE(step.end, replay_->packets().size());
    const auto packets = replay_->packets().subspan(step.begin, step.end - step.begin);
    for (size_t i = 0; i < packets.size(); ++i) {
      pending_.push_back(packets[i]);
      hsa_kernel_dispatch_packet_t& packet = pending_.back().dispatch;
      if (in_order_) packet.header |= 1 << HSA_PACKET_HEADER_BARRIER;
      if (!options.time_commands) continue;
      auto signal = context_.TakeSignal(1);
      if (!signal.ok()) return signal.status();
      packet.completion_signal = signal->get();
      timed_.push_back(
          {.command = program_.launches_[step.begin + i].command, .signal = *std::move(signal)});
    }
    return absl::OkStatus();
  }

  // Copies `bytes` from `from`, `pieces` times, after everything before it.
  absl::Status DoCopies(const ListCall& call, const char* from, int64_t bytes, int64_t pieces,
                        hsa_agent_t from_agent, hsa_agent_t to_agent) {
    if (copied_.handle == 0) {
      auto before = PushBarrier();
      if (!before.ok()) return before.status();
      copied_ = before->get();
      between_.push_back(*std::move(before));
    }
    auto done = context_.TakeSignal(pieces);
    if (!done.ok()) return done.status();
    const SlotRange& range = call.operands[0].range;
    char* to = slots[range.slot] + range.offset;
    for (int64_t begin = 0; begin < range.bytes; begin += bytes) {
      const hsa_status_t code = context_.hsa().amd_memory_async_copy(
          to + begin, to_agent, from, from_agent,
          static_cast<size_t>(std::min(bytes, range.bytes - begin)), 1, &copied_, done->get());
      if (code == HSA_STATUS_SUCCESS) continue;
      // Copies already started use the buffers.
      absl::Status lost = context_.Await(done->get(), pieces - begin / bytes + 1);
      if (!lost.ok()) return lost;
      return ToStatus(context_.hsa(), absl::StrCat("cannot copy for command ", call.command), code);
    }
    copied_ = done->get();
    if (options.time_commands) {
      timed_.push_back({.command = call.command,
                        .signal = *std::move(done),
                        .copies = static_cast<int>(pieces)});
    } else {
      between_.push_back(*std::move(done));
    }
    return absl::OkStatus();
  }

  Program& program_;
  Context& context_;
  bool in_order_ = false;
  std::unique_ptr<Replay> replay_;
  std::vector<Packet> pending_;  // to be pushed together
  hsa_signal_t copied_ = {};     // of the last copy, if nothing was pushed after it
  Signal end_;                   // becomes 0 when everything has ended
  std::vector<Signal> between_;  // that packets and copies wait for
  std::vector<Timed> timed_;
};

std::shared_ptr<ListRun> Program::NewRun() { return std::make_shared<Run>(*this); }

}  // namespace kiln::drivers::hsa
