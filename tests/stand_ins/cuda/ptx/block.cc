// Scheduling of a block's threads.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tests/stand_ins/cuda/ptx/machine.h"

namespace kiln::stand_ins::ptx {
namespace {

constexpr size_t kCallDepthMax = 64;

std::string Coordinates(const std::array<uint32_t, 3>& position) {
  return absl::StrCat("(", position[0], ", ", position[1], ", ", position[2], ")");
}

std::string Place(const Block& block, const Instruction& at) {
  const size_t index = &at - block.program->instructions.data();
  return absl::StrCat(block.program->texts[index], " (line ", block.program->lines[index], ")");
}

int64_t RoundUpTo16(int64_t bytes) { return (bytes + 15) / 16 * 16; }

void RunThread(Thread& thread) {
  while (thread.state == ThreadState::kRunning) {
    const Instruction& instruction = *thread.next++;
    if (instruction.guard != 0 &&
        ((thread.slots[instruction.guard] & 1) != 0) == instruction.guard_negated)
      continue;
    instruction.execute(thread, instruction);
  }
}

// The result of a barrier for its threads: bar.red's popc, and, or.
uint64_t ReduceAtBarrier(const std::vector<Thread*>& waiting, const Instruction& at) {
  int64_t count = 0;
  for (const Thread* thread : waiting)
    count += ((thread->slots[at.c] & 1) != 0) != at.negated ? 1 : 0;
  if (at.operation == 2) return count == static_cast<int64_t>(waiting.size());
  return at.operation == 3 ? count > 0 : count;
}

}  // namespace

void Thread::Fail(const Instruction& at, FaultKind kind, absl::string_view message) {
  state = ThreadState::kFailed;
  if (block->fault.kind != FaultKind::kNone) return;
  block->fault = {kind, absl::StrCat(Place(*block, at), ": ", message, " [kernel ",
                                     block->entry->name, ", block ", Coordinates(block->position),
                                     ", thread ", Coordinates(position), "]")};
}

void Thread::Enter(const DecodedFunction& function, const Instruction* call) {
  if (frames.size() >= kCallDepthMax)
    return Fail(*call, FaultKind::kUndefined, absl::StrCat("more than ", kCallDepthMax, " calls"));
  Frame entered{.function = &function, .call = call, .back = next};
  if (!frames.empty()) {
    const DecodedFunction& caller = *frame().function;
    entered.registers = frame().registers + caller.registers + caller.constants.size();
    entered.local = RoundUpTo16(frame().local + caller.local_bytes);
    entered.parameters = RoundUpTo16(frame().parameters + caller.parameter_bytes);
  }
  const size_t slots_needed = entered.registers + function.registers + function.constants.size();
  if (slot_storage.size() < slots_needed) slot_storage.resize(slots_needed);
  local.resize(entered.local + function.local_bytes, 0xcd);
  parameters.resize(entered.parameters + function.parameter_bytes);
  slots = slot_storage.data() + entered.registers;
  std::copy(function.constants.begin(), function.constants.end(), slots + function.registers);
  frames.push_back(entered);
  next = &block->program->instructions[function.first];
}

void Thread::Leave() {
  const Frame left = frame();
  frames.pop_back();
  const DecodedFunction& callee = *left.function;
  const uint32_t* results = block->program->lists.data() + left.call->list;
  for (size_t i = 0; i < callee.results.size(); ++i) {
    std::memmove(&parameters[frame().parameters + results[i]],
                 &parameters[left.parameters + callee.results[i]], callee.result_sizes[i]);
  }
  slots = slot_storage.data() + frame().registers;
  next = left.back;
}

void Block::Start(Thread& thread, absl::Span<const uint8_t> formals) {
  thread.state = ThreadState::kRunning;
  thread.copies.clear();
  thread.copy_group = 0;
  thread.frames.clear();
  thread.local.clear();
  thread.parameters.clear();
  thread.Enter(*entry, nullptr);
  std::copy(formals.begin(), formals.end(), thread.parameters.begin());
}

void Block::Run(absl::Span<const uint8_t> parameters) {
  const int count = static_cast<int>(threads.size());
  shared.Reset(entry->shared_bytes + shape.dynamic_shared_bytes, options.find_races ? count : 1);
  for (Thread& thread : threads) Start(thread, parameters);
  do {
    for (int first = 0; first < count; first += 32) {
      Warp warp{this, first, std::min(32, count - first)};
      RunWarp(warp);
      if (fault.kind != FaultKind::kNone) return;
    }
  } while (PassBarrier());
}

void Block::RunWarp(Warp& warp) {
  do {
    for (int lane = 0; lane < warp.lanes && fault.kind == FaultKind::kNone; ++lane)
      RunThread(warp.lane(lane));
  } while (fault.kind == FaultKind::kNone && RunCollective(warp));
}

// Lets threads that wait for each other at one instruction continue together. Returns false if none
// can.
bool Block::RunCollective(Warp& warp) {
  uint32_t live = 0;
  for (int lane = 0; lane < warp.lanes; ++lane)
    if (warp.lane(lane).state != ThreadState::kExited) live |= uint32_t{1} << lane;
  for (int lane = 0; lane < warp.lanes; ++lane) {
    if (warp.lane(lane).state != ThreadState::kInWarp) continue;
    const Instruction& at = *warp.lane(lane).stopped_at;
    const auto mask_of = [&](int of) {
      return at.members == 0 ? ~uint32_t{0} : static_cast<uint32_t>(warp.slot(of, at.members));
    };
    const uint32_t mask = mask_of(lane);
    if ((mask >> lane & 1) == 0) {
      warp.Fail(lane, at, "the thread is no member of its own mask");
      return false;
    }
    const uint32_t members = mask & live;
    const auto waits_here = [&](int other) {
      const Thread& thread = warp.lane(other);
      return thread.state == ThreadState::kInWarp && thread.stopped_at == &at &&
             mask_of(other) == mask;
    };
    bool all = true;
    for (int other = 0; other < warp.lanes && all; ++other)
      all = (members >> other & 1) == 0 || waits_here(other);
    if (!all) continue;
    for (int other = 0; other < warp.lanes; ++other)
      if ((members >> other & 1) != 0) warp.lane(other).state = ThreadState::kRunning;
    at.collective(warp, at, members);
    return fault.kind == FaultKind::kNone;
  }
  return false;
}

// Lets the block's threads continue from the barrier that all of them have reached. Returns false
// if there is none, or if all threads have exited.
bool Block::PassBarrier() {
  std::vector<Thread*> waiting;
  bool stuck = false;
  for (Thread& thread : threads) {
    if (thread.state == ThreadState::kAtBarrier) waiting.push_back(&thread);
    if (thread.state == ThreadState::kInWarp) stuck = true;
  }
  if (stuck) ReportWaiting();
  if (waiting.empty() || stuck) return false;
  const auto fail = [&](Thread& thread, absl::string_view why) {
    thread.Fail(*thread.stopped_at, FaultKind::kUndefined, why);
    return false;
  };
  const uint64_t barrier = waiting[0]->slots[waiting[0]->stopped_at->a];
  for (size_t i = 0; i < waiting.size(); ++i) {
    Thread& thread = *waiting[i];
    const Instruction& at = *thread.stopped_at;
    if (thread.slots[at.a] != barrier)
      return fail(thread, "endless wait: other threads of the block wait at another barrier");
    if (at.b != 0 && thread.slots[at.b] != threads.size())
      return fail(thread, "a barrier of a part of the block is not interpreted");
    if (i > 0 && at.aligned && waiting[i - 1]->index / 32 == thread.index / 32 &&
        waiting[i - 1]->stopped_at != &at) {
      return fail(thread,
                  absl::StrCat("the threads of a warp reach the barrier at different places, "
                               "another one at ",
                               Place(*this, *waiting[i - 1]->stopped_at)));
    }
  }
  const uint64_t reduced = ReduceAtBarrier(waiting, *waiting[0]->stopped_at);
  for (Thread* thread : waiting) {
    const Instruction& at = *thread->stopped_at;
    if (at.operation != 0) thread->slots[at.to] = reduced;
    thread->state = ThreadState::kRunning;
  }
  shared.Barrier();
  return true;
}

void Block::ReportWaiting() {
  for (Thread& thread : threads) {
    if (thread.state != ThreadState::kInWarp) continue;
    std::string others;
    const int first = thread.index / 32 * 32;
    for (int i = first; i < std::min<int>(first + 32, threads.size()); ++i) {
      const Thread& other = threads[i];
      if (other.state == ThreadState::kExited || other.stopped_at == thread.stopped_at) continue;
      others = absl::StrCat("; thread ", Coordinates(other.position), " waits at ",
                            Place(*this, *other.stopped_at));
    }
    return thread.Fail(*thread.stopped_at, FaultKind::kUndefined,
                       absl::StrCat("endless wait for the other threads of the mask", others));
  }
}

}  // namespace kiln::stand_ins::ptx
