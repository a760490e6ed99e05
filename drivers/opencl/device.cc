#include "drivers/opencl/device.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "drivers/common/check.h"
#include "drivers/opencl/buffer.h"
#include "drivers/opencl/error.h"
#include "drivers/opencl/kernel.h"

namespace kiln::drivers::opencl {
namespace {

// The part of a device's memory that may be cached for reuse: one kCachedPart-th.
constexpr int64_t kCachedPart = 4;
// Lists that the device has at once: enough to keep it busy, few enough that the vendor's library
// uses little memory for them.
constexpr int kInFlightMax = 4;

std::shared_ptr<CachingAllocator> MakeAllocator(const std::shared_ptr<Context>& context,
                                                const DeviceInfo& info,
                                                int64_t allocation_bytes_max) {
  return std::make_shared<CachingAllocator>(CachingAllocator::Options{
      .device = info.name,
      .memory_bytes = info.memory_bytes,
      .cache_bytes = info.memory_bytes / kCachedPart,
      // A size class may exceed the device's largest buffer although the requested size does not.
      .allocate =
          [context, allocation_bytes_max](int64_t bytes) {
            return context->AllocateMemory(std::min(bytes, allocation_bytes_max));
          },
      .release = [context](void* memory, int64_t bytes) { context->ReleaseMemory(memory); }});
}

}  // namespace

absl::StatusOr<std::shared_ptr<const OpenClDevice::Opened>> OpenClDevice::OpenContext(
    std::shared_ptr<const Library> cl, const DeviceInfo& info, const DeviceFacts& facts,
    const CommandBufferUse& command_buffers) {
  std::unique_ptr<CommandBufferExtension> extension;
  if (command_buffers.wanted)
    extension = CommandBufferExtension::Find(*cl, facts.id, command_buffers.on_broken);
  auto context = Context::Make(std::move(cl), facts.id, std::move(extension));
  if (!context.ok()) return context.status();
  auto list_queue = (*context)->MakeQueue();
  if (!list_queue.ok()) return list_queue.status();
  auto copy_queue = (*context)->MakeQueue();
  if (!copy_queue.ok()) return copy_queue.status();
  auto opened = std::make_shared<Opened>();
  opened->context = *std::move(context);
  opened->allocator = MakeAllocator(opened->context, info, facts.allocation_bytes_max);
  opened->list_queue = *std::move(list_queue);
  opened->copy_queue = *std::move(copy_queue);
  return opened;
}

absl::StatusOr<std::unique_ptr<OpenClDevice>> OpenClDevice::Make(std::shared_ptr<const Library> cl,
                                                                 DeviceInfo info, DeviceFacts facts,
                                                                 CommandBufferUse command_buffers,
                                                                 SteadyClock now) {
  auto opened = OpenContext(cl, info, facts, command_buffers);
  if (!opened.ok()) return opened.status();
  return std::unique_ptr<OpenClDevice>(
      new OpenClDevice(std::move(cl), *std::move(opened), std::move(info), std::move(facts),
                       std::move(command_buffers), std::move(now)));
}

OpenClDevice::OpenClDevice(std::shared_ptr<const Library> cl, std::shared_ptr<const Opened> opened,
                           DeviceInfo info, DeviceFacts facts, CommandBufferUse command_buffers,
                           SteadyClock now)
    : info_(std::move(info)),
      facts_(std::move(facts)),
      command_buffers_(std::move(command_buffers)),
      now_(std::move(now)),
      cl_(std::move(cl)),
      opened_(std::move(opened)),
      last_end_(now_()),
      in_flight_(kInFlightMax),
      completions_(absl::StrCat("end-", info_.name)),
      submissions_(absl::StrCat("kiln-", info_.name)),
      copies_(absl::StrCat("copy-", info_.name)) {}

std::shared_ptr<const OpenClDevice::Opened> OpenClDevice::opened() const {
  absl::MutexLock lock(&opened_mutex_);
  return opened_;
}

OpenClDevice::~OpenClDevice() {
  // A callback may submit more work, which needs all threads.
  in_flight_.AwaitAll();
}

absl::StatusOr<std::unique_ptr<Buffer>> OpenClDevice::Allocate(int64_t bytes) {
  if (absl::Status status = Health(); !status.ok()) return status;
  if (bytes > facts_.allocation_bytes_max) {
    return absl::ResourceExhaustedError(
        absl::StrCat(info_.name, " cannot hold ", bytes, " bytes in one buffer: its largest has ",
                     facts_.allocation_bytes_max, "; use smaller tensors or a smaller batch"));
  }
  const std::shared_ptr<const Opened> on = opened();
  absl::StatusOr<void*> memory = on->allocator->Allocate(bytes);
  if (!memory.ok()) return memory.status();
  return std::make_unique<OpenClBuffer>(on->allocator, on->context.get(), *memory, bytes);
}

absl::StatusOr<std::unique_ptr<LoadedKernel>> OpenClDevice::LoadKernel(const KernelImage& image) {
  if (absl::Status status = Health(); !status.ok()) return status;
  return OpenClKernel::Load(opened()->context, facts_, image);
}

bool OpenClDevice::CanReach(const Buffer& buffer) const {
  return AddressOf(*opened(), buffer).ok();
}

absl::StatusOr<std::unique_ptr<PreparedList>> OpenClDevice::Prepare(CommandList list) {
  if (absl::Status status = Health(); !status.ok()) return status;
  auto program = Program::Make(opened()->context, list);
  if (!program.ok()) return program.status();
  return std::make_unique<OpenClPreparedList>(*std::move(program));
}

absl::Status OpenClDevice::Submit(PreparedList& list, absl::Span<Buffer* const> slots,
                                  SubmitOptions options, std::function<void(SubmitResult)> done) {
  auto* prepared = dynamic_cast<OpenClPreparedList*>(&list);
  if (prepared == nullptr)
    return absl::InvalidArgumentError("the list was not prepared by an OpenCL device");
  const std::shared_ptr<Program>& program = prepared->program();
  if (absl::Status status = CheckSlots(program->needs(), slots, options); !status.ok())
    return status;
  auto submission = std::make_shared<Submission>();
  submission->on = opened();
  if (program->context() != submission->on->context.get())
    return absl::InvalidArgumentError(
        "the list belongs to another device, or was lost with this one");
  submission->slots.reserve(slots.size());
  for (size_t i = 0; i < slots.size(); ++i) {
    if (program->needs().IsHost(i)) {
      submission->slots.push_back(static_cast<char*>(slots[i]->host_pointer()));
      continue;
    }
    const auto address = AddressOf(*submission->on, *slots[i]);
    if (!address.ok()) return address.status();
    submission->slots.push_back(*address);
  }
  submission->program = program;
  submission->options = std::move(options);
  submission->done = std::move(done);
  in_flight_.Submit();
  submissions_.Push([this, submission = std::move(submission)] { Start(submission); });
  return absl::OkStatus();
}

void OpenClDevice::Start(std::shared_ptr<Submission> submission) {
  in_flight_.Enqueue();
  in_flight_.AwaitCopiesTo(submission->slots);
  const std::shared_ptr<SignalGroup>& group = submission->options.group;
  submission->start = now_();
  SubmitResult& result = submission->enqueued.result;
  result.status = submission->on->context->Health();
  if (result.status.ok()) {
    submission->enqueued = submission->program->Enqueue(
        submission->on->list_queue.get(), submission->slots, submission->options, now_,
        [this, &submission, &group](Handle<cl_event> before, int signal) {
          completions_.Push([on = submission->on, group, signal,
                             before = std::make_shared<Handle<cl_event>>(std::move(before))] {
            RaiseAfter(*on->context, std::move(*before), *group, signal);
          });
        });
  }
  // At once, because another device's thread may be waiting for a signal that will not come.
  if (!result.status.ok() && group != nullptr) group->Abort(result.status);
  completions_.Push([this, submission = std::move(submission)] { End(*submission); });
}

void OpenClDevice::RaiseAfter(Context& context, Handle<cl_event> before, SignalGroup& group,
                              int signal) {
  const absl::Status status = WaitFor(context, before.get());
  if (status.ok()) {
    group.Raise(signal);
  } else {
    group.Abort(status);
  }
}

void OpenClDevice::End(Submission& submission) {
  SubmitResult& result = submission.enqueued.result;
  SignalGroup* group = submission.options.group.get();
  Context& context = *submission.on->context;
  if (result.status.ok()) {
    for (const Enqueued::CommandEvent& command : submission.enqueued.events) {
      if (result.status = WaitFor(context, command.event.get()); !result.status.ok()) break;
    }
    if (!result.status.ok() && group != nullptr) group->Abort(result.status);
  }
  // Other commands of the list may still run, without an event to wait for, and use the buffers
  // that `done` releases. A lost device might never finish.
  if (!result.status.ok() && context.Health().ok()) {
    const cl_int code = context.cl().Finish(submission.on->list_queue.get());
    if (code != CL_SUCCESS) context.Failure("cannot finish a list", code).IgnoreError();
  }
  const SteadyTime end = now_();
  // Excludes the time of the list before it.
  result.seconds = Seconds(std::max(submission.start, last_end_), end);
  last_end_ = end;
  if (result.status.ok()) {
    const double seconds = MeasureOnDevice(submission);
    // With waits, a list begins before its first command runs.
    if (seconds > 0 && !submission.program->needs().needs_group) result.seconds = seconds;
  } else {
    result.command_seconds.clear();
  }
  submission.enqueued.Release();
  submission.program = nullptr;
  in_flight_.End();
  submission.done(std::move(result));
  in_flight_.Report();
}

absl::Status OpenClDevice::WaitFor(Context& context, cl_event event) {
  if (event == nullptr) return absl::OkStatus();
  const Library& cl = context.cl();
  const cl_int waited = cl.WaitForEvents(1, &event);
  cl_int status = CL_COMPLETE;
  const cl_int asked =
      cl.GetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, nullptr);
  // The event's own error is more specific than the error of waiting.
  const cl_int code = asked == CL_SUCCESS && status < 0 ? status : waited;
  if (code == CL_SUCCESS) return absl::OkStatus();
  return context.Failure("a command failed on the device", code);
}

double OpenClDevice::MeasureOnDevice(Submission& submission) {
  const Library& cl = submission.on->context->cl();
  const std::vector<Enqueued::CommandEvent>& events = submission.enqueued.events;
  if (events.empty()) return 0;
  const auto read = [&cl](cl_event event, cl_profiling_info what, cl_ulong* nanoseconds) {
    return cl.GetEventProfilingInfo(event, what, sizeof(*nanoseconds), nanoseconds, nullptr) ==
           CL_SUCCESS;
  };
  // Seconds from `from`'s start or end to the end of `to`; 0 if the device does not report them.
  // Subtracts before converting to double, which could not hold a large timestamp exactly.
  const auto seconds = [&read](cl_event from, cl_profiling_info edge, cl_event to) {
    cl_ulong begin = 0, end = 0;
    const bool known =
        read(from, edge, &begin) && read(to, CL_PROFILING_COMMAND_END, &end) && end >= begin;
    return known ? static_cast<double>(end - begin) * 1e-9 : 0.0;
  };
  if (submission.options.time_commands) {
    for (const Enqueued::CommandEvent& command : events) {
      submission.enqueued.result.command_seconds[command.command] =
          seconds(command.event.get(), CL_PROFILING_COMMAND_START, command.event.get());
    }
  }
  cl_event last = events.back().event.get();
  if (cl_event before = submission.enqueued.before.get(); before != nullptr)
    return seconds(before, CL_PROFILING_COMMAND_END, last);
  return seconds(events.front().event.get(), CL_PROFILING_COMMAND_START, last);
}

absl::StatusOr<char*> OpenClDevice::AddressOf(const Opened& on, const Buffer& buffer) const {
  const auto* mine = dynamic_cast<const OpenClBuffer*>(&buffer);
  if (mine != nullptr && mine->context() == on.context.get()) return mine->memory();
  return absl::InvalidArgumentError(
      absl::StrCat("the buffer is not one of ", info_.name, ", or was lost with it"));
}

absl::Status OpenClDevice::StartCopyToDevice(Buffer& destination, int64_t offset,
                                             absl::Span<const char> source, CopyDone done) {
  std::shared_ptr<const Opened> on = opened();
  const auto address = AddressOf(*on, destination);
  if (!address.ok()) return address.status();
  if (absl::Status status = CheckCopy("copy to", destination, offset, source.size()); !status.ok())
    return status;
  return StartCopy(std::move(on), *address + offset, source.data(), source.size(), *address,
                   std::move(done));
}

absl::Status OpenClDevice::StartCopyToHost(const Buffer& source, int64_t offset,
                                           absl::Span<char> destination, CopyDone done) {
  std::shared_ptr<const Opened> on = opened();
  const auto address = AddressOf(*on, source);
  if (!address.ok()) return address.status();
  if (absl::Status status = CheckCopy("copy from", source, offset, destination.size());
      !status.ok())
    return status;
  return StartCopy(std::move(on), destination.data(), *address + offset, destination.size(),
                   nullptr, std::move(done));
}

absl::Status OpenClDevice::StartCopy(std::shared_ptr<const Opened> on, void* destination,
                                     const void* source, size_t bytes, char* written,
                                     CopyDone done) {
  if (absl::Status status = on->context->Health(); !status.ok()) return status;
  if (bytes == 0) {
    done(absl::OkStatus());
    return absl::OkStatus();
  }
  const Library& cl = on->context->cl();
  // Held until the wait is queued, so that ends are awaited in the order of the queue.
  absl::MutexLock starting(&copy_mutex_);
  cl_event event = nullptr;
  const cl_int code = cl.EnqueueSVMMemcpy(on->copy_queue.get(), CL_FALSE, destination, source,
                                          bytes, 0, nullptr, &event);
  if (code != CL_SUCCESS)
    return on->context->Failure(absl::StrCat("cannot copy ", bytes, " bytes"), code);
  auto copy = std::make_shared<Handle<cl_event>>(event, cl.ReleaseEvent);
  in_flight_.StartCopy(written);
  copies_.Push([this, on, copy = std::move(copy), written, done = std::move(done)] {
    EndCopy(*on->context, copy->get(), written, done);
  });
  cl.Flush(on->copy_queue.get());
  return absl::OkStatus();
}

void OpenClDevice::EndCopy(Context& context, cl_event event, char* written, const CopyDone& done) {
  done(WaitFor(context, event));
  in_flight_.ReportCopy(written);
}

absl::Status OpenClDevice::Synchronize() {
  submissions_.Wait();
  completions_.Wait();
  copies_.Wait();
  return Health();
}

absl::Status OpenClDevice::Health() {
  const std::shared_ptr<const Opened> on = opened();
  if (!IsAvailable(*cl_, facts_.id)) on->context->Lose("it is no longer available");
  return on->context->Health();
}

absl::Status OpenClDevice::Revive() {
  if (Health().ok()) return absl::OkStatus();
  if (!IsAvailable(*cl_, facts_.id))
    return absl::UnavailableError("the device is no longer available");
  auto fresh = OpenContext(cl_, info_, facts_, command_buffers_);
  if (!fresh.ok()) return fresh.status();
  if (absl::Status works = (*fresh)->context->Try(); !works.ok()) return works;
  absl::MutexLock lock(&opened_mutex_);
  opened_ = *std::move(fresh);
  return absl::OkStatus();
}

}  // namespace kiln::drivers::opencl
