#include "drivers/cuda/prepared_list.h"

#include <algorithm>
#include <cstdint>

#include "proto/check/check.h"

namespace kiln::drivers::cuda {
namespace {

// A node's copy is one row, of at most CUDA's largest pitch, 2^31 - 1 bytes.
constexpr int64_t kCallBytesMax = int64_t{1} << 30;

}  // namespace

absl::StatusOr<std::shared_ptr<Program>> Program::Make(std::shared_ptr<Context> context,
                                                       CommandList list, ListNeeds needs) {
  std::shared_ptr<Program> program(new Program(std::move(context), std::move(needs)));
  if (absl::Status status = program->Build(std::move(list)); !status.ok()) return status;
  program->graphs_.resize(program->parts().size());
  KILN_CHECK_EQ(program->parts().back().end, program->calls_.size());
  return program;
}

absl::Status Program::Add(ListCall call) {
  if (!call.HasAddresses() && table_ == nullptr) {
    auto table = SlotTable::Make(context_, num_slots());
    if (!table.ok()) return table.status();
    table_ = *std::move(table);
  }
  while (call.kind != ListCall::Kind::kLaunch &&
         call.operands.front().range.bytes > kCallBytesMax) {
    ListCall piece = call;
    for (RangeAccess& operand : piece.operands) operand.range.bytes = kCallBytesMax;
    AddPiece(std::move(piece));
    for (RangeAccess& operand : call.operands) {
      operand.range.offset += kCallBytesMax;
      operand.range.bytes -= kCallBytesMax;
    }
  }
  AddPiece(std::move(call));
  return absl::OkStatus();
}

void Program::AddPiece(ListCall call) {
  const bool is_copy = call.kind == ListCall::Kind::kCopy;
  const auto is_host = [&](size_t i) {
    return is_copy && needs().IsHost(call.operands[i].range.slot);
  };
  const bool to_host = is_host(0);
  const bool from_host = is_host(1);
  std::vector<int> dependencies = dependencies_.Add(call.operands);
  calls_.push_back({std::move(call), to_host, from_host, std::move(dependencies)});
}

// The stream is in order, so the next part begins when all of this one has ended.
size_t Program::EndPart() {
  dependencies_ = Dependencies(static_cast<int>(num_slots()));
  return calls_.size();
}

class Program::Run : public ListRun {
 public:
  explicit Run(Program& program) : program_(program), context_(*program.context_) {}

  absl::Status Begin() override {
    Context::Current current(context_);
    one_by_one_ = options.time_commands || program_.SlotsOverlap(slots);
    places_ = {slots, program_.table_ == nullptr ? 0 : program_.table_->address()};
    if (absl::Status status = Record(&begin_); !status.ok()) return status;
    return program_.table_ == nullptr ? absl::OkStatus() : program_.table_->Write(slots, &table_);
  }

  absl::Status Enqueue(size_t number) override {
    Context::Current current(context_);
    const Part& part = program_.parts()[number];
    KILN_CHECK_LE(part.end, program_.calls_.size());
    const auto calls =
        absl::MakeConstSpan(program_.calls_).subspan(part.begin, part.end - part.begin);
    // A single call is faster than a graph of it.
    if (!one_by_one_ && calls.size() > 1) return LaunchGraph(program_.graphs_[number], calls);
    for (const Call& call : calls) {
      if (absl::Status status = EnqueueOne(call); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::shared_ptr<Completion>> Mark() override {
    auto event = context_.RecordEvent();
    if (!event.ok()) return event.status();
    return std::make_shared<Event>(*std::move(event));
  }

  absl::Status End() override { return Record(&end_); }

  absl::Status AwaitEnqueued() override {
    // Waits for an event, because that sleeps; waiting for the stream keeps a core busy.
    auto event = context_.RecordEvent();
    return event.ok() ? event->Await() : event.status();
  }

  absl::Status AwaitEnd() override { return end_.Await(); }

  void Drain() override {
    if (!context_.Health().ok()) return;
    Context::Current current(context_);
    const CUresult code = context_.cuda().StreamSynchronize(context_.list_stream());
    if (code != CUDA_SUCCESS) context_.Failure("cannot finish a list", code).IgnoreError();
  }

  double Measure() override {
    for (const Timed& timed : timed_)
      result.command_seconds[timed.command] += timed.begin.SecondsUntil(timed.end);
    return begin_.SecondsUntil(end_);
  }

  void Release() override {
    timed_.clear();
    begin_ = Event();
    end_ = Event();
    table_ = PinnedBlock();
  }

 private:
  // Around a call, if commands are timed.
  struct Timed {
    size_t command = 0;
    Event begin = {};
    Event end = {};
  };

  absl::Status Record(Event* event) {
    auto recorded = context_.RecordEvent();
    if (recorded.ok()) *event = *std::move(recorded);
    return recorded.status();
  }

  absl::Status LaunchGraph(std::unique_ptr<Graph>& graph, absl::Span<const Call> calls) {
    if (graph == nullptr) {
      auto made = Graph::Make(context_, calls, places_);
      if (!made.ok()) return made.status();
      graph = *std::move(made);
    }
    return graph->Launch(places_);
  }

  absl::Status EnqueueOne(const Call& call) {
    Timed timed = {.command = call.command};
    if (options.time_commands)
      if (absl::Status status = Record(&timed.begin); !status.ok()) return status;
    const CUresult code = cuda::Enqueue(context_, call, places_);
    if (code != CUDA_SUCCESS) return context_.Failure(call.WhatFailed(), code);
    if (!options.time_commands) return absl::OkStatus();
    if (absl::Status status = Record(&timed.end); !status.ok()) return status;
    timed_.push_back(std::move(timed));
    return absl::OkStatus();
  }

  Program& program_;
  Context& context_;
  Places places_;
  bool one_by_one_ = false;
  Event begin_;  // around the whole list
  Event end_;
  std::vector<Timed> timed_;
  PinnedBlock table_;  // the source of the slot table's update
};

std::shared_ptr<ListRun> Program::NewRun() { return std::make_shared<Run>(*this); }

}  // namespace kiln::drivers::cuda
