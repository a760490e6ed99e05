#include "drivers/opencl/prepared_list.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "drivers/opencl/error.h"

namespace kiln::drivers::opencl {
namespace {

// A device may delay commands until they are flushed. Flushing parts of a long list lets it begin
// while the rest is enqueued.
constexpr size_t kCallsPerFlush = 32;

}  // namespace

void Enqueued::Release() {
  events.clear();
  before = {};
  buffers.clear();
  table.clear();
}

absl::StatusOr<std::shared_ptr<Program>> Program::Make(std::shared_ptr<Context> context,
                                                       const CommandList& list) {
  auto needs = CheckCommandList(list);
  if (!needs.ok()) return needs.status();
  std::shared_ptr<Program> program(
      new Program(std::move(context), static_cast<size_t>(list.num_slots)));
  program->needs_ = *std::move(needs);
  for (size_t i = 0; i < list.commands.size(); ++i) {
    absl::Status status = std::visit(
        [&program](const auto& command) { return program->Add(command); }, list.commands[i]);
    if (!status.ok())
      return absl::Status(status.code(), absl::StrCat("command ", i, ": ", status.message()));
  }
  program->ChooseEvents();
  if (program->context_->command_buffers() != nullptr) program->ChooseRecorded();
  return program;
}

absl::Status Program::Add(const LaunchCommand& launch) {
  const auto* kernel = dynamic_cast<const OpenClKernel*>(launch.kernel);
  if (kernel == nullptr || kernel->context() != context_.get()) {
    return absl::InvalidArgumentError(absl::StrCat("the kernel ", launch.kernel->image().name,
                                                   " was not loaded by this OpenCL device"));
  }
  auto function = kernel->MakeFunction();
  if (!function.ok()) return function.status();
  Call call{.kind = Kind::kLaunch};
  call.kernel = *std::move(function);
  call.image = &kernel->image();
  call.points = PointsOf(launch);
  calls_.push_back(std::move(call));
  if (!kernel->image().takes_slot_table) AddOperands(launch.arguments);
  return SetParameters(launch, calls_.back().kernel.get());
}

absl::Status Program::SetParameters(const LaunchCommand& launch, cl_kernel kernel) {
  const KernelImage& image = launch.kernel->image();
  if (image.takes_slot_table) {
    if (absl::Status status = SetSlotParameters(launch, kernel); !status.ok()) return status;
  }
  if (!image.runs_parts) return absl::OkStatus();
  const auto first = static_cast<cl_ulong>(PointsOf(launch).begin);
  const cl_int code = context_->cl().SetKernelArg(
      kernel, static_cast<cl_uint>(image.num_parameters() - 1), sizeof(first), &first);
  if (code == CL_SUCCESS) return absl::OkStatus();
  return context_->Failure(absl::StrCat("cannot set the first grid point of ", image.name), code);
}

absl::Status Program::SetSlotParameters(const LaunchCommand& launch, cl_kernel kernel) {
  if (table_ == nullptr) {
    auto table = SlotTable::Make(context_, num_slots_);
    if (!table.ok()) return table.status();
    table_ = *std::move(table);
  }
  table_->AddUser(kernel);
  const Library& cl = context_->cl();
  cl_int code = cl.SetKernelArgSVMPointer(kernel, 0, table_->address());
  for (cl_uint i = 0; i < launch.arguments.size() && code == CL_SUCCESS; ++i) {
    const cl_ulong packed = PackSlot(launch.arguments[i].slot, launch.arguments[i].offset);
    code = cl.SetKernelArg(kernel, i + 1, sizeof(packed), &packed);
  }
  if (code == CL_SUCCESS) return absl::OkStatus();
  return context_->Failure(
      absl::StrCat("cannot set the arguments of ", launch.kernel->image().name), code);
}

absl::Status Program::Add(const CopyCommand& copy) {
  calls_.push_back({.kind = Kind::kCopy, .bytes = static_cast<size_t>(copy.destination.bytes)});
  AddOperands({copy.destination, copy.source});
  return absl::OkStatus();
}

absl::Status Program::Add(const FillCommand& fill) {
  calls_.push_back({.kind = Kind::kFill,
                    .value = fill.value,
                    .bytes = static_cast<size_t>(fill.destination.bytes)});
  AddOperands({fill.destination});
  return absl::OkStatus();
}

absl::Status Program::Add(const SignalCommand& command) {
  calls_.push_back({.kind = Kind::kSignal, .signal = command.signal});
  return absl::OkStatus();
}

absl::Status Program::Add(const WaitCommand& command) {
  calls_.push_back({.kind = Kind::kWait, .signal = command.signal});
  return absl::OkStatus();
}

// Adds operands to the call that was added last.
void Program::AddOperands(absl::Span<const SlotRange> ranges) {
  calls_.back().first_operand = operands_.size();
  calls_.back().num_operands = ranges.size();
  for (const SlotRange& range : ranges) operands_.push_back({range.slot, range.offset});
}

bool Program::IsEnqueued(const Call& call) {
  return call.kind == Kind::kLaunch ||
         ((call.kind == Kind::kCopy || call.kind == Kind::kFill) && call.bytes > 0);
}

// The queue is in order, so an event covers everything enqueued before it.
void Program::ChooseEvents() {
  Call* latest = nullptr;
  for (Call& call : calls_) {
    if (call.kind == Kind::kSignal && latest != nullptr) latest->wants_event = true;
    if (!IsEnqueued(call)) continue;
    if (latest == nullptr) call.wants_event = true;
    latest = &call;
  }
  if (latest != nullptr) latest->wants_event = true;
}

void Program::ChooseRecorded() {
  bool open = false;
  for (size_t i = 0; i < calls_.size(); ++i) {
    const Call& call = calls_[i];
    // A launch with operands has addresses, which may differ in the next run.
    const bool stays = call.kind == Kind::kLaunch && call.num_operands == 0;
    if (stays && (!open || recorded_.back().IsFull())) recorded_.emplace_back(i);
    if (stays) recorded_.back().Add({call.kernel.get(), call.threads(), call.block()});
    open = stays;
  }
  recorded_.erase(std::remove_if(recorded_.begin(), recorded_.end(),
                                 [](const RecordedLaunches& run) { return !run.IsWorthIt(); }),
                  recorded_.end());
}

Enqueued Program::Enqueue(cl_command_queue queue, absl::Span<char* const> slots,
                          const SubmitOptions& options, const SteadyClock& now,
                          const OnSignal& on_signal) {
  const Library& cl = context_->cl();
  Enqueued enqueued;
  SubmitResult& result = enqueued.result;
  if (options.time_commands) result.command_seconds.assign(calls_.size(), 0);
  // Vendors keep state about an argument's memory. If the memory at an address may have been
  // replaced, an equal address must be set again.
  if (const int64_t releases = context_->releases(); releases != releases_) {
    for (Operand& operand : operands_) operand.set = nullptr;
    releases_ = releases;
  }
  if (table_ != nullptr) {
    enqueued.table.assign(slots.begin(), slots.end());
    // Host memory must not be named to kernels.
    for (size_t i = 0; i < slots.size(); ++i)
      if (needs_.IsHost(i)) enqueued.table[i] = nullptr;
    result.status = table_->Write(queue, enqueued.table);
  }
  // A recorded kernel only has the memory named before recording. Recording a list that runs once
  // is not worth it.
  const int64_t namings = table_ == nullptr ? 0 : table_->namings();
  const bool settled = namings == namings_;
  namings_ = namings;
  size_t next_recorded = 0;
  if (!settled) {
    for (RecordedLaunches& launches : recorded_) launches.Forget();
  }
  if (!settled || options.time_commands) next_recorded = recorded_.size();
  for (size_t i = 0; i < calls_.size() && result.status.ok(); ++i) {
    if (next_recorded < recorded_.size() && recorded_[next_recorded].begin() == i) {
      RecordedLaunches& launches = recorded_[next_recorded++];
      const auto done = EnqueueRecorded(launches, queue, &enqueued);
      result.status = done.status();
      if (!done.ok()) break;
      if (*done) {
        i = launches.end() - 1;
        continue;
      }
    }
    result.status = EnqueueOne(i, queue, slots, options, now, on_signal, &enqueued);
  }
  cl.Flush(queue);
  return enqueued;
}

absl::Status Program::EnqueueOne(size_t number, cl_command_queue queue,
                                 absl::Span<char* const> slots, const SubmitOptions& options,
                                 const SteadyClock& now, const OnSignal& on_signal,
                                 Enqueued* enqueued) {
  const Library& cl = context_->cl();
  const Call& call = calls_[number];
  if (call.kind == Kind::kSignal) {
    cl_event before = enqueued->events.empty() ? nullptr : enqueued->events.back().event.get();
    if (before != nullptr) cl.RetainEvent(before);
    cl.Flush(queue);
    on_signal(Handle<cl_event>(before, cl.ReleaseEvent), call.signal);
    return absl::OkStatus();
  }
  if (call.kind == Kind::kWait) {
    cl.Flush(queue);
    const SteadyTime before = now();
    absl::Status status = options.group->Wait(call.signal);
    if (options.time_commands) enqueued->result.command_seconds[number] = Seconds(before, now());
    return status;
  }
  if (!IsEnqueued(call)) return absl::OkStatus();
  cl_event event = nullptr;
  const bool wants_event = call.wants_event || options.time_commands;
  absl::Status status = EnqueueCall(call, queue, slots, wants_event ? &event : nullptr);
  if (event != nullptr) enqueued->events.push_back({number, {event, cl.ReleaseEvent}});
  if ((number + 1) % kCallsPerFlush == 0) cl.Flush(queue);
  return status;
}

absl::StatusOr<bool> Program::EnqueueRecorded(RecordedLaunches& launches, cl_command_queue queue,
                                              Enqueued* enqueued) {
  auto buffer = launches.Take(*context_, queue);
  if (buffer == nullptr) return false;
  const Library& cl = context_->cl();
  cl_event event = nullptr;
  if (enqueued->events.empty()) {
    const cl_int code = cl.EnqueueMarkerWithWaitList(queue, 0, nullptr, &event);
    if (code != CL_SUCCESS) return context_->Failure("cannot enqueue a marker", code);
    enqueued->before = Handle<cl_event>(event, cl.ReleaseEvent);
  }
  const cl_int code = buffer->Enqueue(&event);
  switch (code) {
    case CL_SUCCESS:
      break;
    case CL_INVALID_OPERATION:  // the library may call it pending after its event
      return false;
    case CL_INVALID_COMMAND_BUFFER_KHR:
    case CL_INCOMPATIBLE_COMMAND_QUEUE_KHR:
      context_->command_buffers()->Break(ToStatus("cannot enqueue a command buffer", code));
      return false;
    default:
      return context_->Failure(
          absl::StrCat("cannot launch ", launches.end() - launches.begin(), " recorded kernels"),
          code);
  }
  enqueued->events.push_back({launches.end() - 1, {event, cl.ReleaseEvent}});
  enqueued->buffers.push_back(std::move(buffer));
  cl.Flush(queue);
  return true;
}

absl::Status Program::EnqueueCall(const Call& call, cl_command_queue queue,
                                  absl::Span<char* const> slots, cl_event* event) {
  const Library& cl = context_->cl();
  const auto address = [&](size_t operand) {
    const Operand& at = operands_[call.first_operand + operand];
    return slots[at.slot] + at.offset;
  };
  cl_int code = CL_SUCCESS;
  switch (call.kind) {
    case Kind::kLaunch:
      code = EnqueueLaunch(call, queue, slots, event);
      if (code == CL_SUCCESS) return absl::OkStatus();
      return context_->Failure(absl::StrCat("cannot launch the kernel ", call.image->name), code);
    case Kind::kCopy:
      code = cl.EnqueueSVMMemcpy(queue, CL_FALSE, address(0), address(1), call.bytes, 0, nullptr,
                                 event);
      if (code == CL_SUCCESS) return absl::OkStatus();
      return context_->Failure(absl::StrCat("cannot copy ", call.bytes, " bytes"), code);
    case Kind::kFill:
      code = cl.EnqueueSVMMemFill(queue, address(0), &call.value, 1, call.bytes, 0, nullptr, event);
      if (code == CL_SUCCESS) return absl::OkStatus();
      return context_->Failure(absl::StrCat("cannot fill ", call.bytes, " bytes"), code);
    case Kind::kSignal:
    case Kind::kWait:
      break;
  }
  return absl::InternalError("a command was not enqueued");
}

cl_int Program::EnqueueLaunch(const Call& call, cl_command_queue queue,
                              absl::Span<char* const> slots, cl_event* event) {
  const Library& cl = context_->cl();
  for (size_t i = 0; i < call.num_operands; ++i) {
    Operand& operand = operands_[call.first_operand + i];
    const char* address = slots[operand.slot] + operand.offset;
    if (address == operand.set) continue;
    operand.set = nullptr;
    const cl_int code =
        cl.SetKernelArgSVMPointer(call.kernel.get(), static_cast<cl_uint>(i), address);
    if (code != CL_SUCCESS) return code;
    operand.set = address;
  }
  const size_t block = call.block();
  const size_t threads = call.threads();
  return cl.EnqueueNDRangeKernel(queue, call.kernel.get(), 1, nullptr, &threads, &block, 0, nullptr,
                                 event);
}

}  // namespace kiln::drivers::opencl
