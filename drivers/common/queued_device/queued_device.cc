#include "drivers/common/queued_device/queued_device.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "drivers/common/check.h"
#include "proto/check/check.h"

namespace kiln::drivers {
namespace {

// The part of a device's memory that may be cached for reuse: one kCachedPart-th.
constexpr int64_t kCachedPart = 4;
// Lists that the device has at once: enough to keep it busy, few enough that waiting for all of
// them is short and that the vendor's library uses little memory for them.
constexpr int kInFlightMax = 4;

class QueuedBuffer : public Buffer {
 public:
  // Takes ownership of `memory`, which `allocator` allocated for `bytes`. The allocator keeps the
  // context, since buffers may outlive their device.
  QueuedBuffer(std::shared_ptr<CachingAllocator> allocator, const DeviceContext& owner,
               void* memory, int64_t bytes)
      : allocator_(std::move(allocator)), owner_(owner), memory_(memory), bytes_(bytes) {
    KILN_CHECK(memory_ != nullptr) << bytes_ << " bytes";
    KILN_CHECK_GE(bytes_, 0);
  }
  ~QueuedBuffer() override { allocator_->Free(memory_, bytes_); }

  int64_t bytes() const override { return bytes_; }
  char* address() const { return static_cast<char*>(memory_); }
  const DeviceContext& owner() const { return owner_; }

 private:
  const std::shared_ptr<CachingAllocator> allocator_;
  const DeviceContext& owner_;
  void* const memory_;
  const int64_t bytes_;
};

class QueuedList : public PreparedList {
 public:
  explicit QueuedList(std::shared_ptr<ListProgram> program) : program_(std::move(program)) {
    KILN_CHECK(program_ != nullptr);
  }
  // Shared with the submissions in flight, so that a list may be destroyed before they end.
  const std::shared_ptr<ListProgram>& program() const { return program_; }
  int64_t host_bytes() const override { return static_cast<int64_t>(program_->mirror().bytes()); }

 private:
  const std::shared_ptr<ListProgram> program_;
};

}  // namespace

QueuedDevice::QueuedDevice(std::shared_ptr<VendorDevice> vendor, DeviceInfo info, SteadyClock now)
    : info_(std::move(info)),
      now_(std::move(now)),
      last_end_(now_()),
      opened_(Open(std::move(vendor))),
      in_flight_(kInFlightMax),
      copies_(absl::StrCat("copy-", info_.name)),
      completions_(absl::StrCat("end-", info_.name)),
      submissions_(absl::StrCat("kiln-", info_.name)) {}

QueuedDevice::~QueuedDevice() {
  // A callback may submit more work, which needs all threads.
  in_flight_.AwaitAll();
}

std::shared_ptr<const QueuedDevice::Opened> QueuedDevice::Open(
    std::shared_ptr<VendorDevice> vendor) const {
  const std::shared_ptr<DeviceContext> context = vendor->context();
  // A size class may exceed the device's largest buffer although the requested size does not.
  const int64_t bytes_max = vendor->buffer_bytes_max();
  auto allocator = std::make_shared<CachingAllocator>(CachingAllocator::Options{
      .device = info_.name,
      .memory_bytes = info_.memory_bytes,
      .cache_bytes = info_.memory_bytes / kCachedPart,
      .allocate =
          [context, bytes_max](int64_t bytes) {
            return context->AllocateMemory(std::min(bytes, bytes_max));
          },
      .release = [context](void* memory, int64_t bytes) { context->ReleaseMemory(memory); }});
  return std::make_shared<const Opened>(Opened{std::move(vendor), std::move(allocator)});
}

std::shared_ptr<const QueuedDevice::Opened> QueuedDevice::opened() const {
  absl::MutexLock lock(&opened_mutex_);
  return opened_;
}

absl::StatusOr<std::unique_ptr<Buffer>> QueuedDevice::Allocate(int64_t bytes) {
  const std::shared_ptr<const Opened> on = opened();
  DeviceContext& context = *on->vendor->context();
  if (absl::Status status = context.Health(); !status.ok()) return status;
  if (const int64_t bytes_max = on->vendor->buffer_bytes_max(); bytes > bytes_max) {
    return absl::ResourceExhaustedError(
        absl::StrCat(info_.name, " cannot hold ", bytes, " bytes in one buffer: its largest has ",
                     bytes_max, "; use smaller tensors or a smaller batch"));
  }
  const absl::StatusOr<void*> memory = on->allocator->Allocate(bytes);
  if (!memory.ok()) {
    // A lost device has no memory either.
    const absl::Status health = context.AskHealth();
    return health.ok() ? memory.status() : health;
  }
  return std::make_unique<QueuedBuffer>(on->allocator, context, *memory, bytes);
}

absl::StatusOr<std::unique_ptr<LoadedKernel>> QueuedDevice::LoadKernel(const KernelImage& image) {
  const std::shared_ptr<const Opened> on = opened();
  if (absl::Status status = on->vendor->context()->AskHealth(); !status.ok()) return status;
  return on->vendor->LoadKernel(image);
}

bool QueuedDevice::CanReach(const Buffer& buffer) const {
  return AddressOf(*opened(), buffer).ok();
}

absl::StatusOr<std::unique_ptr<PreparedList>> QueuedDevice::Prepare(CommandList list) {
  const std::shared_ptr<const Opened> on = opened();
  if (absl::Status status = on->vendor->context()->AskHealth(); !status.ok()) return status;
  auto needs = CheckCommandList(list);
  if (!needs.ok()) return needs.status();
  auto program = on->vendor->Prepare(std::move(list), *std::move(needs));
  if (!program.ok()) return program.status();
  return std::make_unique<QueuedList>(*std::move(program));
}

absl::Status QueuedDevice::Submit(PreparedList& list, absl::Span<Buffer* const> slots,
                                  SubmitOptions options, std::function<void(SubmitResult)> done) {
  auto* prepared = dynamic_cast<QueuedList*>(&list);
  const std::shared_ptr<const Opened> on = opened();
  if (prepared == nullptr || prepared->program()->owner() != on->vendor->context().get())
    return absl::InvalidArgumentError(
        "the list belongs to another device, or was lost with this one");
  const std::shared_ptr<ListProgram>& program = prepared->program();
  if (absl::Status status = CheckSlots(program->needs(), slots, options); !status.ok())
    return status;
  const std::shared_ptr<ListRun> run = program->NewRun();
  run->slots.reserve(slots.size());
  const bool is_mirrored = program->mirror().bytes() > 0;
  for (size_t i = 0; i < slots.size(); ++i) {
    if (program->needs().IsHost(i)) {
      run->slots.push_back(is_mirrored ? program->mirror().slot(i)
                                       : static_cast<char*>(slots[i]->host_pointer()));
      continue;
    }
    const auto address = AddressOf(*on, *slots[i]);
    if (!address.ok()) return address.status();
    run->slots.push_back(*address);
  }
  KILN_CHECK_EQ(run->slots.size(), program->num_slots());
  run->buffers.assign(slots.begin(), slots.end());
  run->options = std::move(options);
  run->done = std::move(done);
  in_flight_.Submit();
  submissions_.Push([this, submission = Submission{on, program, run}]() mutable {
    Start(std::move(submission));
  });
  return absl::OkStatus();
}

void QueuedDevice::Start(Submission submission) {
  ListRun& run = *submission.run;
  in_flight_.Enqueue();
  in_flight_.AwaitCopiesTo(run.slots);
  KILN_CHECK(run.done != nullptr);
  run.start = now_();
  run.result.status = submission.on->vendor->context()->Health();
  if (run.result.status.ok()) {
    run.EnqueueAll(*submission.program, now_, [&](std::shared_ptr<Completion> before, int signal) {
      KILN_CHECK(run.options.group != nullptr) << "signal " << signal;
      completions_.Push(
          [on = submission.on, group = run.options.group, signal, before = std::move(before)] {
            RaiseAfter(*on, before.get(), *group, signal);
          });
    });
  }
  // At once, because another device's thread may be waiting for a signal that will not come.
  if (!run.result.status.ok() && run.options.group != nullptr)
    run.options.group->Abort(run.result.status);
  completions_.Push([this, submission = std::move(submission)]() mutable { End(submission); });
}

void QueuedDevice::RaiseAfter(const Opened& on, Completion* before, SignalGroup& group,
                              int signal) {
  const absl::Status status = before == nullptr ? on.vendor->context()->Health() : before->Await();
  if (status.ok()) {
    group.Raise(signal);
  } else {
    group.Abort(status);
  }
}

void QueuedDevice::End(Submission& submission) {
  ListRun& run = *submission.run;
  SubmitResult& result = run.result;
  if (result.status.ok()) {
    result.status = run.AwaitEnd();
    if (!result.status.ok() && run.options.group != nullptr)
      run.options.group->Abort(result.status);
  }
  // Work enqueued before the error still uses the buffers that `done` releases.
  if (!result.status.ok()) run.Drain();
  const SteadyTime end = now_();
  // Excludes the time of the list before it.
  result.seconds = Seconds(std::max(run.start, last_end_), end);
  last_end_ = end;
  if (result.status.ok()) {
    const double seconds = run.Measure();
    // With waits, a list begins before its first command runs.
    if (seconds > 0 && !submission.program->needs().needs_group) result.seconds = seconds;
  } else {
    result.command_seconds.clear();
  }
  run.Release();
  submission.program = nullptr;
  in_flight_.End();
  run.done(std::move(result));
  in_flight_.Report();
}

absl::StatusOr<char*> QueuedDevice::AddressOf(const Opened& on, const Buffer& buffer) const {
  const auto* queued = dynamic_cast<const QueuedBuffer*>(&buffer);
  if (queued != nullptr &&
      (&queued->owner() == on.vendor->context().get() || on.vendor->Reaches(queued->owner()))) {
    return queued->address();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the buffer is not one of ", info_.name, ", or was lost with it"));
}

absl::Status QueuedDevice::StartCopyToDevice(Buffer& destination, int64_t offset,
                                             absl::Span<const char> source, CopyDone done) {
  const std::shared_ptr<const Opened> on = opened();
  const auto address = AddressOf(*on, destination);
  if (!address.ok()) return address.status();
  const auto size = static_cast<int64_t>(source.size());
  if (absl::Status status = CheckCopy("copy to", destination, offset, size); !status.ok())
    return status;
  const auto copy = [on, to = *address + offset, source] {
    return on->vendor->copies().ToDevice(to, source);
  };
  return StartCopy(*on, *address, copy, std::move(done));
}

absl::Status QueuedDevice::StartCopyToHost(const Buffer& source, int64_t offset,
                                           absl::Span<char> destination, CopyDone done) {
  const std::shared_ptr<const Opened> on = opened();
  const auto address = AddressOf(*on, source);
  if (!address.ok()) return address.status();
  const auto size = static_cast<int64_t>(destination.size());
  if (absl::Status status = CheckCopy("copy from", source, offset, size); !status.ok())
    return status;
  const auto copy = [on, from = *address + offset, destination] {
    return on->vendor->copies().ToHost(destination, from);
  };
  return StartCopy(*on, /*written=*/nullptr, copy, std::move(done));
}

absl::Status QueuedDevice::StartCopy(const Opened& on, const char* written,
                                     std::function<absl::Status()> copy, CopyDone done) {
  if (absl::Status status = on.vendor->context()->AskHealth(); !status.ok()) return status;
  KILN_CHECK(done != nullptr);
  in_flight_.StartCopy(written);
  copies_.Push([this, written, copy = std::move(copy), done = std::move(done)] {
    done(copy());
    in_flight_.ReportCopy(written);
  });
  return absl::OkStatus();
}

absl::Status QueuedDevice::Synchronize() {
  submissions_.Wait();
  completions_.Wait();
  copies_.Wait();
  return Health();
}

absl::Status QueuedDevice::Revive() {
  const std::shared_ptr<const Opened> lost = opened();
  if (lost->vendor->context()->AskHealth().ok()) return absl::OkStatus();
  // When everything is reported, the threads no longer use it.
  in_flight_.AwaitAll();
  auto fresh = lost->vendor->Reopen();
  const absl::Status works = fresh.ok() ? (*fresh)->context()->Try() : fresh.status();
  if (!works.ok()) {
    // No vendor guarantees that a process can continue after such an error.
    return absl::UnavailableError(
        absl::StrCat(works.message(), "; if this does not change, restart kilnd"));
  }
  absl::MutexLock lock(&opened_mutex_);
  opened_ = Open(*std::move(fresh));
  return absl::OkStatus();
}

}  // namespace kiln::drivers
