#include "drivers/cuda/prepared_list.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace kiln::drivers::cuda {
namespace {

// A node's copy is one row, of at most CUDA's largest pitch, 2^31 - 1 bytes.
constexpr int64_t kCallBytesMax = int64_t{1} << 30;

// Calls use(begin, bytes) for each piece of at most kCallBytesMax bytes.
template <typename Use>
void ForEachPiece(int64_t bytes, Use use) {
  for (int64_t begin = 0; begin < bytes; begin += kCallBytesMax)
    use(begin, std::min(kCallBytesMax, bytes - begin));
}

}  // namespace

absl::StatusOr<std::shared_ptr<Program>> Program::Make(std::shared_ptr<Context> context,
                                                       CommandList list) {
  auto needs = CheckCommandList(list);
  if (!needs.ok()) return needs.status();
  std::shared_ptr<Program> program(new Program(std::move(context), list.num_slots));
  program->mirror_ = HostMirror(&list);
  if (const size_t bytes = program->mirror_.bytes(); bytes > 0) {
    const auto memory = program->context_->AllocateHostMemory(bytes);
    if (!memory.ok()) return memory.status();
    program->mirror_.Place(*memory);
  }
  program->needs_ = *std::move(needs);
  program->num_commands_ = list.commands.size();
  program->parts_.emplace_back();
  for (size_t i = 0; i < list.commands.size(); ++i) {
    absl::Status status =
        std::visit([&](const auto& command) { return program->Add(command, i); }, list.commands[i]);
    if (!status.ok())
      return absl::Status(status.code(), absl::StrCat("command ", i, ": ", status.message()));
  }
  program->EndPart(Part::Then::kNothing, 0, 0);
  return program;
}

Program::~Program() {
  if (mirror_.memory() != nullptr) context_->ReleaseHostMemory(mirror_.memory());
}

absl::Status Program::Add(const LaunchCommand& launch, size_t command) {
  const auto* kernel = dynamic_cast<const CudaKernel*>(launch.kernel);
  if (kernel == nullptr || kernel->context() != context_.get()) {
    return absl::InvalidArgumentError(absl::StrCat("the kernel ", launch.kernel->image().name,
                                                   " was not loaded by this CUDA device"));
  }
  if (kernel->image().takes_slot_table && table_ == nullptr) {
    auto table = SlotTable::Make(context_, written_.size());
    if (!table.ok()) return table.status();
    table_ = *std::move(table);
  }
  AddCall({.kind = Call::Kind::kLaunch,
           .kernel = kernel,
           .command = command,
           .points = PointsOf(launch)},
          AccessesOf(launch));
  return absl::OkStatus();
}

absl::Status Program::Add(const CopyCommand& copy, size_t command) {
  const auto& [from, to] = copy;
  ForEachPiece(to.bytes, [&](int64_t begin, int64_t bytes) {
    AddCall({.kind = Call::Kind::kCopy,
             .to_host = needs_.IsHost(to.slot),
             .from_host = needs_.IsHost(from.slot),
             .bytes = static_cast<size_t>(bytes),
             .command = command},
            {{{to.slot, to.offset + begin, bytes}, Access::kWrite},
             {{from.slot, from.offset + begin, bytes}, Access::kRead}});
  });
  return absl::OkStatus();
}

absl::Status Program::Add(const FillCommand& fill, size_t command) {
  const auto& to = fill.destination;
  ForEachPiece(to.bytes, [&](int64_t begin, int64_t bytes) {
    AddCall({.kind = Call::Kind::kFill,
             .value = fill.value,
             .bytes = static_cast<size_t>(bytes),
             .command = command},
            {{{to.slot, to.offset + begin, bytes}, Access::kWrite}});
  });
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
  call.dependencies = dependencies_.Add(accesses);
  for (const auto& [range, access] : accesses) {
    call.operands.push_back({range.slot, range.offset});
    if (access != Access::kRead) written_[range.slot] = true;
  }
  calls_.push_back(std::move(call));
}

// The stream is in order, so the next part begins when all of this one has ended.
void Program::EndPart(Part::Then then, int signal, size_t command) {
  Part& part = parts_.back();
  part.end = calls_.size();
  part.then = then;
  part.signal = signal;
  part.command = command;
  dependencies_ = Dependencies(static_cast<int>(written_.size()));
  parts_.emplace_back();
  parts_.back().begin = parts_.back().end = calls_.size();
}

// Whether two slots, one of which is written, have the same memory. The commands then have
// dependencies that their slots do not show.
bool Program::SlotsOverlap(absl::Span<const CUdeviceptr> addresses) const {
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

Enqueued Program::Enqueue(absl::Span<const CUdeviceptr> addresses,
                          absl::Span<Buffer* const> buffers, const SubmitOptions& options,
                          const SteadyClock& now, const OnSignal& on_signal) {
  Enqueued enqueued;
  absl::Status& status = enqueued.result.status;
  const auto record = [&](Event* event) {
    auto recorded = Record();
    if (!recorded.ok()) return recorded.status();
    *event = *std::move(recorded);
    return absl::OkStatus();
  };
  const bool timed = options.time_commands;
  if (timed) enqueued.result.command_seconds.assign(num_commands_, 0);
  const bool one_by_one = timed || SlotsOverlap(addresses);
  const Places places = {addresses, table_ == nullptr ? 0 : table_->address()};
  status = record(&enqueued.begin);
  if (status.ok() && table_ != nullptr) status = table_->Write(addresses, &enqueued.table);
  const HostMirror::Run run{buffers, now, &enqueued.result.command_seconds};
  const auto await = [this] { return AwaitAll(); };
  for (size_t i = 0; i < parts_.size(); ++i) {
    Part& part = parts_[i];
    if (status.ok()) status = mirror_.Before(i, run, await);
    if (status.ok()) status = EnqueuePart(part, places, one_by_one, timed, &enqueued);
    if (status.ok()) status = mirror_.After(i, run, await);
    if (!status.ok()) break;
    if (part.then == Part::Then::kSignal) {
      Event before;
      if (status = record(&before); status.ok()) on_signal(std::move(before), part.signal);
    } else if (part.then == Part::Then::kWait) {
      const SteadyTime before = now();
      status = options.group->Wait(part.signal);
      if (timed) enqueued.result.command_seconds[part.command] = Seconds(before, now());
    }
  }
  if (status.ok()) status = record(&enqueued.end);
  return enqueued;
}

absl::Status Program::EnqueuePart(Part& part, const Places& places, bool one_by_one, bool timed,
                                  Enqueued* enqueued) {
  const auto calls = absl::MakeConstSpan(calls_).subspan(part.begin, part.end - part.begin);
  // A single call is faster than a graph of it.
  if (!one_by_one && calls.size() > 1) {
    if (part.graph == nullptr) {
      auto graph = Graph::Make(*context_, calls, places);
      if (!graph.ok()) return graph.status();
      part.graph = *std::move(graph);
    }
    return part.graph->Launch(places);
  }
  for (const Call& call : calls) {
    Enqueued::Timed around = {.command = call.command};
    if (timed) {
      auto begin = Record();
      if (!begin.ok()) return begin.status();
      around.begin = *std::move(begin);
    }
    const CUresult code = cuda::Enqueue(*context_, call, places);
    if (code != CUDA_SUCCESS) return context_->Failure(call.WhatFailed(), code);
    if (!timed) continue;
    auto end = Record();
    if (!end.ok()) return end.status();
    around.end = *std::move(end);
    enqueued->timed.push_back(std::move(around));
  }
  return absl::OkStatus();
}

absl::Status Program::AwaitAll() {
  // Waits for an event, because that sleeps; waiting for the stream keeps a core busy.
  const auto end = Record();
  if (!end.ok()) return end.status();
  const CUresult code = context_->cuda().EventSynchronize(end->get());
  if (code == CUDA_SUCCESS) return absl::OkStatus();
  return context_->Failure("a command failed on the device", code);
}

absl::StatusOr<Event> Program::Record() {
  const auto taken = context_->TakeEvent();
  if (!taken.ok()) return taken.status();
  Event event(context_.get(), *taken);
  const CUresult code = context_->cuda().EventRecord(event.get(), context_->list_stream());
  if (code != CUDA_SUCCESS) return context_->Failure("cannot record an event", code);
  return event;
}

}  // namespace kiln::drivers::cuda
