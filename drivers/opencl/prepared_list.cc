#include "drivers/opencl/prepared_list.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "drivers/opencl/error.h"
#include "drivers/opencl/kernel.h"
#include "proto/check/check.h"

namespace kiln::drivers::opencl {
namespace {

// A device may delay commands until they are flushed. Flushing parts of a long list lets it begin
// while the rest is enqueued.
constexpr size_t kCallsPerFlush = 32;

}  // namespace

absl::StatusOr<std::shared_ptr<Program>> Program::Make(std::shared_ptr<Context> context,
                                                       CommandList list, ListNeeds needs) {
  std::shared_ptr<Program> program(new Program(std::move(context), std::move(needs)));
  absl::Status status = program->Build(std::move(list), HostSlots::kDirect);
  if (!status.ok()) return status;
  program->ChooseEvents();
  if (program->context_->command_buffers() != nullptr) program->ChooseRecorded();
  // As much work as building it.
  KILN_VALIDATE(*program, 1);
  return program;
}

void Program::Validate() const {
  KILN_CHECK_EQ(parts().back().end, calls_.size());
  KILN_CHECK(calls_.empty() || calls_.front().wants_event);
  for (const Call& call : calls_) {
    const bool is_launch = call.kind == ListCall::Kind::kLaunch;
    KILN_CHECK_EQ(call.function.get() != nullptr, is_launch) << "command " << call.command;
    KILN_CHECK_EQ(call.set.size(), is_launch && call.HasAddresses() ? call.operands.size() : 0);
    KILN_CHECK(call.HasAddresses() || table_ != nullptr) << "command " << call.command;
  }
  size_t end = 0;
  for (const RecordedLaunches& recorded : recorded_) {
    KILN_CHECK_GE(recorded.begin(), end);
    end = recorded.end();
    KILN_CHECK_LE(end, calls_.size());
    for (size_t i = recorded.begin(); i < end; ++i) KILN_CHECK(!calls_[i].HasAddresses()) << i;
  }
}

absl::Status Program::Add(ListCall call) {
  calls_.push_back({std::move(call)});
  Call& added = calls_.back();
  if (added.kind != ListCall::Kind::kLaunch) return absl::OkStatus();
  auto function = static_cast<const OpenClKernel*>(added.kernel)->MakeFunction();
  if (!function.ok()) return function.status();
  added.function = *std::move(function);
  if (added.HasAddresses()) added.set.assign(added.operands.size(), nullptr);
  return SetParameters(added, added.function.get());
}

absl::Status Program::SetParameters(const ListCall& launch, cl_kernel kernel) {
  const KernelImage& image = launch.kernel->image();
  if (image.takes_slot_table) {
    if (absl::Status status = SetSlotParameters(launch, kernel); !status.ok()) return status;
  }
  if (!image.runs_parts) return absl::OkStatus();
  const auto first = static_cast<cl_ulong>(launch.points.begin);
  const cl_int code = context_->cl().SetKernelArg(
      kernel, static_cast<cl_uint>(image.num_parameters() - 1), sizeof(first), &first);
  if (code == CL_SUCCESS) return absl::OkStatus();
  return context_->Failure(absl::StrCat("cannot set the first grid point of ", image.name), code);
}

absl::Status Program::SetSlotParameters(const ListCall& launch, cl_kernel kernel) {
  if (table_ == nullptr) {
    auto table = SlotTable::Make(context_, num_slots());
    if (!table.ok()) return table.status();
    table_ = *std::move(table);
  }
  table_->AddUser(kernel);
  const Library& cl = context_->cl();
  cl_int code = cl.SetKernelArgSVMPointer(kernel, 0, table_->address());
  for (cl_uint i = 0; i < launch.operands.size() && code == CL_SUCCESS; ++i) {
    const cl_ulong packed =
        PackSlot(launch.operands[i].range.slot, launch.operands[i].range.offset);
    code = cl.SetKernelArg(kernel, i + 1, sizeof(packed), &packed);
  }
  if (code == CL_SUCCESS) return absl::OkStatus();
  return context_->Failure(
      absl::StrCat("cannot set the arguments of ", launch.kernel->image().name), code);
}

size_t Program::EndPart() { return calls_.size(); }

// The queue is in order, so an event covers everything enqueued before it.
void Program::ChooseEvents() {
  if (!calls_.empty()) calls_.front().wants_event = true;
  for (const Part& part : parts()) {
    if (part.then != Part::Then::kWait && part.end > 0) calls_[part.end - 1].wants_event = true;
  }
}

void Program::ChooseRecorded() {
  for (const Part& part : parts()) {
    bool open = false;
    for (size_t i = part.begin; i < part.end; ++i) {
      const Call& call = calls_[i];
      // Addresses may differ in the next run.
      const bool stays = !call.HasAddresses();
      if (stays && (!open || recorded_.back().IsFull())) recorded_.emplace_back(i);
      if (stays) recorded_.back().Add({call.function.get(), call.threads(), call.block()});
      open = stays;
    }
  }
  std::erase_if(recorded_, [](const RecordedLaunches& run) { return !run.IsWorthIt(); });
}

class Program::Run : public ListRun {
 public:
  explicit Run(Program& program)
      : program_(program), context_(*program.context_), queue_(program.context_->list_queue()) {}

  absl::Status Begin() override {
    // Vendors keep state about an argument's memory. If the memory at an address may have been
    // replaced, an equal address must be set again.
    if (const int64_t releases = context_.releases(); releases != program_.releases_) {
      for (Call& call : program_.calls_) std::fill(call.set.begin(), call.set.end(), nullptr);
      program_.releases_ = releases;
    }
    absl::Status status = WriteTable();
    // A recorded kernel only has the memory named before recording. Recording a list that runs once
    // is not worth it.
    const int64_t namings = program_.table_ == nullptr ? 0 : program_.table_->namings();
    const bool settled = namings == program_.namings_;
    program_.namings_ = namings;
    if (!settled) {
      for (RecordedLaunches& launches : program_.recorded_) launches.Forget();
    }
    if (!settled || options.time_commands) next_recorded_ = program_.recorded_.size();
    return status;
  }

  absl::Status Enqueue(size_t number) override {
    const Part& part = program_.parts()[number];
    for (size_t i = part.begin; i < part.end;) {
      const auto next = EnqueueFrom(i);
      if (!next.ok()) return next.status();
      KILN_CHECK(*next > i && *next <= part.end) << "call " << *next << " after " << i;
      i = *next;
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::shared_ptr<Completion>> Mark() override {
    cl_event before = events_.empty() ? nullptr : events_.back().event.get();
    if (before != nullptr) context_.cl().RetainEvent(before);
    context_.cl().Flush(queue_);
    return std::make_shared<Event>(context_, before);
  }

  absl::Status Flush() override {
    context_.cl().Flush(queue_);
    return absl::OkStatus();
  }

  absl::Status End() override { return Flush(); }

  absl::Status AwaitEnd() override {
    for (const CommandEvent& command : events_) {
      absl::Status status = Event::Await(context_, command.event.get());
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  // Some commands have no event to wait for.
  void Drain() override {
    if (!context_.Health().ok()) return;
    const cl_int code = context_.cl().Finish(queue_);
    if (code != CL_SUCCESS) context_.Failure("cannot finish a list", code).IgnoreError();
  }

  double Measure() override {
    if (events_.empty()) return 0;
    const auto seconds = [this](const Handle<cl_event>& from, cl_profiling_info edge,
                                const Handle<cl_event>& to) {
      return Event::SecondsBetween(context_, from.get(), edge, to.get());
    };
    if (options.time_commands) {
      for (const auto& [command, event] : events_)
        result.command_seconds[command] = seconds(event, CL_PROFILING_COMMAND_START, event);
    }
    const Handle<cl_event>& last = events_.back().event;
    return before_ ? seconds(before_, CL_PROFILING_COMMAND_END, last)
                   : seconds(events_.front().event, CL_PROFILING_COMMAND_START, last);
  }

  void Release() override {
    events_.clear();
    before_ = {};
    buffers_.clear();
    table_.clear();
  }

 private:
  struct CommandEvent {
    size_t command;
    Handle<cl_event> event;
  };

  absl::Status WriteTable() {
    if (program_.table_ == nullptr) return absl::OkStatus();
    table_ = slots;
    // Host memory must not be named to kernels.
    for (size_t i = 0; i < slots.size(); ++i)
      if (program_.needs().IsHost(i)) table_[i] = nullptr;
    return program_.table_->Write(queue_, table_);
  }

  absl::Status EnqueueOne(size_t number) {
    Call& call = program_.calls_[number];
    cl_event event = nullptr;
    const bool wants_event = call.wants_event || options.time_commands;
    absl::Status status = EnqueueCall(call, wants_event ? &event : nullptr);
    if (event != nullptr) events_.push_back({call.command, {event, context_.cl().ReleaseEvent}});
    if ((number + 1) % kCallsPerFlush == 0) context_.cl().Flush(queue_);
    return status;
  }

  // Enqueues the recorded launches that begin with this call, if possible; else the call. Returns
  // the number of the next call.
  absl::StatusOr<size_t> EnqueueFrom(size_t number) {
    if (next_recorded_ < program_.recorded_.size() &&
        program_.recorded_[next_recorded_].begin() == number) {
      RecordedLaunches& launches = program_.recorded_[next_recorded_++];
      const auto enqueued = EnqueueRecorded(launches);
      if (!enqueued.ok()) return enqueued.status();
      if (*enqueued) return launches.end();
    }
    if (absl::Status status = EnqueueOne(number); !status.ok()) return status;
    return number + 1;
  }

  // Returns whether the launches were enqueued. If not, none was.
  absl::StatusOr<bool> EnqueueRecorded(RecordedLaunches& launches) {
    auto buffer = launches.Take(context_, queue_);
    if (buffer == nullptr) return false;
    const Library& cl = context_.cl();
    cl_event event = nullptr;
    if (events_.empty()) {
      const cl_int code = cl.EnqueueMarkerWithWaitList(queue_, 0, nullptr, &event);
      if (code != CL_SUCCESS) return context_.Failure("cannot enqueue a marker", code);
      before_ = Handle<cl_event>(event, cl.ReleaseEvent);
    }
    const cl_int code = buffer->Enqueue(&event);
    switch (code) {
      case CL_SUCCESS:
        break;
      case CL_INVALID_OPERATION:  // the library may call it pending after its event
        return false;
      case CL_INVALID_COMMAND_BUFFER_KHR:
      case CL_INCOMPATIBLE_COMMAND_QUEUE_KHR:
        context_.command_buffers()->Break(ToStatus("cannot enqueue a command buffer", code));
        return false;
      default:
        return context_.Failure(
            absl::StrCat("cannot launch ", launches.end() - launches.begin(), " recorded kernels"),
            code);
    }
    events_.push_back({program_.calls_[launches.end() - 1].command, {event, cl.ReleaseEvent}});
    buffers_.push_back(std::move(buffer));
    cl.Flush(queue_);
    return true;
  }

  char* AddressOf(const RangeAccess& operand) const {
    return slots[operand.range.slot] + operand.range.offset;
  }

  absl::Status EnqueueCall(Call& call, cl_event* event) {
    const cl_int code = call.kind == ListCall::Kind::kLaunch ? EnqueueLaunch(call, event)
                                                             : EnqueueMove(call, event);
    return code == CL_SUCCESS ? absl::OkStatus() : context_.Failure(call.WhatFailed(), code);
  }

  cl_int EnqueueMove(const Call& call, cl_event* event) {
    const Library& cl = context_.cl();
    char* const to = AddressOf(call.operands[0]);
    if (call.kind == ListCall::Kind::kFill)
      return cl.EnqueueSVMMemFill(queue_, to, &call.value, 1, call.bytes(), 0, nullptr, event);
    return cl.EnqueueSVMMemcpy(queue_, CL_FALSE, to, AddressOf(call.operands[1]), call.bytes(), 0,
                               nullptr, event);
  }

  cl_int EnqueueLaunch(Call& call, cl_event* event) {
    const Library& cl = context_.cl();
    cl_kernel kernel = call.function.get();
    for (size_t i = 0; i < call.set.size(); ++i) {
      const char* address = AddressOf(call.operands[i]);
      if (address == call.set[i]) continue;
      call.set[i] = nullptr;
      const cl_int code = cl.SetKernelArgSVMPointer(kernel, static_cast<cl_uint>(i), address);
      if (code != CL_SUCCESS) return code;
      call.set[i] = address;
    }
    const size_t block = call.block();
    const size_t threads = call.threads();
    return cl.EnqueueNDRangeKernel(queue_, kernel, 1, nullptr, &threads, &block, 0, nullptr, event);
  }

  Program& program_;
  Context& context_;
  const cl_command_queue queue_;
  size_t next_recorded_ = 0;
  // In the order of the calls: events of the first and last call, of those before a signal, and of
  // all if commands are timed.
  std::vector<CommandEvent> events_;
  // If a command buffer comes first: a marker before it, because the command buffer's own event
  // only gives its end.
  Handle<cl_event> before_;
  // The enqueued command buffers; reserved for this run until it has ended.
  std::vector<std::shared_ptr<const CommandBuffer>> buffers_;
  std::vector<char*> table_;  // the source of the slot table's update
};

std::shared_ptr<ListRun> Program::NewRun() { return std::make_shared<Run>(*this); }

}  // namespace kiln::drivers::opencl
