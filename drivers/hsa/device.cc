#include "drivers/hsa/device.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "drivers/common/check.h"
#include "drivers/hsa/buffer.h"
#include "drivers/hsa/kernel.h"

namespace kiln::drivers::hsa {
namespace {

// The part of a device's memory that may be cached for reuse: one kCachedPart-th.
constexpr int64_t kCachedPart = 4;
// Lists that the device has at once: enough to keep it busy, few enough that waiting for all of
// them is short.
constexpr int kInFlightMax = 4;

std::shared_ptr<CachingAllocator> MakeAllocator(const std::shared_ptr<Context>& context,
                                                const DeviceInfo& info) {
  return std::make_shared<CachingAllocator>(CachingAllocator::Options{
      .device = info.name,
      .memory_bytes = info.memory_bytes,
      .cache_bytes = info.memory_bytes / kCachedPart,
      .allocate = [context](int64_t bytes) { return context->AllocateMemory(bytes); },
      .release = [context](void* memory, int64_t bytes) { context->ReleaseMemory(memory); }});
}

}  // namespace

absl::StatusOr<std::shared_ptr<const HsaDevice::Opened>> HsaDevice::OpenContext(
    std::shared_ptr<const Library> hsa, const DeviceFacts& facts, const DeviceInfo& info,
    const std::vector<hsa_agent_t>& peers) {
  auto context = Context::Make(std::move(hsa), facts, peers);
  if (!context.ok()) return context.status();
  auto staging = Staging::Make(*context);
  if (!staging.ok()) return staging.status();
  auto allocator = MakeAllocator(*context, info);
  return std::make_shared<const Opened>(
      Opened{*std::move(context), std::move(allocator), *std::move(staging)});
}

absl::StatusOr<std::unique_ptr<HsaDevice>> HsaDevice::Make(std::shared_ptr<const Library> hsa,
                                                           const DeviceFacts& facts,
                                                           DeviceInfo info,
                                                           std::vector<hsa_agent_t> peers,
                                                           SteadyClock now) {
  auto opened = OpenContext(std::move(hsa), facts, info, peers);
  if (!opened.ok()) return opened.status();
  return std::unique_ptr<HsaDevice>(
      new HsaDevice(*std::move(opened), std::move(info), std::move(peers), std::move(now)));
}

HsaDevice::HsaDevice(std::shared_ptr<const Opened> opened, DeviceInfo info,
                     std::vector<hsa_agent_t> peers, SteadyClock now)
    : info_(std::move(info)),
      now_(std::move(now)),
      peers_(std::move(peers)),
      last_end_(now_()),
      opened_(std::move(opened)),
      in_flight_(kInFlightMax),
      copies_(absl::StrCat("copy-", info_.name)),
      completions_(absl::StrCat("end-", info_.name)),
      submissions_(absl::StrCat("kiln-", info_.name)) {}

HsaDevice::~HsaDevice() {
  // A callback may submit more work, which needs both threads.
  in_flight_.AwaitAll();
}

std::shared_ptr<const HsaDevice::Opened> HsaDevice::opened() const {
  absl::MutexLock lock(&opened_mutex_);
  return opened_;
}

absl::StatusOr<std::unique_ptr<Buffer>> HsaDevice::Allocate(int64_t bytes) {
  const std::shared_ptr<const Opened> on = opened();
  if (absl::Status status = on->context->Health(); !status.ok()) return status;
  absl::StatusOr<void*> memory = on->allocator->Allocate(bytes);
  if (!memory.ok()) {
    // A lost device has no memory either.
    const absl::Status health = on->context->Health();
    return health.ok() ? memory.status() : health;
  }
  return std::make_unique<HsaBuffer>(on->allocator, on->context, *memory, bytes);
}

absl::StatusOr<std::unique_ptr<LoadedKernel>> HsaDevice::LoadKernel(const KernelImage& image) {
  const std::shared_ptr<const Opened> on = opened();
  if (absl::Status status = on->context->Health(); !status.ok()) return status;
  return HsaKernel::Load(on->context, info_.target, image);
}

bool HsaDevice::CanReach(const Buffer& buffer) const { return AddressOf(*opened(), buffer).ok(); }

absl::StatusOr<std::unique_ptr<PreparedList>> HsaDevice::Prepare(CommandList list) {
  const std::shared_ptr<const Opened> on = opened();
  if (absl::Status status = on->context->Health(); !status.ok()) return status;
  auto program = Program::Make(on->context, std::move(list));
  if (!program.ok()) return program.status();
  return std::make_unique<HsaPreparedList>(*std::move(program));
}

absl::Status HsaDevice::Submit(PreparedList& list, absl::Span<Buffer* const> slots,
                               SubmitOptions options, std::function<void(SubmitResult)> done) {
  auto* prepared = dynamic_cast<HsaPreparedList*>(&list);
  if (prepared == nullptr)
    return absl::InvalidArgumentError("the list was not prepared by an HSA device");
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
    const auto address = program->needs().IsHost(i) ? program->mirror().slot(i)
                                                    : AddressOf(*submission->on, *slots[i]);
    if (!address.ok()) return address.status();
    submission->slots.push_back(*address);
  }
  submission->buffers.assign(slots.begin(), slots.end());
  submission->program = program;
  submission->options = std::move(options);
  submission->done = std::move(done);
  in_flight_.Submit();
  submissions_.Push([this, submission = std::move(submission)] { Start(submission); });
  return absl::OkStatus();
}

void HsaDevice::Start(std::shared_ptr<Submission> submission) {
  in_flight_.Enqueue();
  in_flight_.AwaitCopiesTo(submission->slots);
  const std::shared_ptr<SignalGroup>& group = submission->options.group;
  submission->start = now_();
  SubmitResult& result = submission->enqueued.result;
  Context& context = *submission->on->context;
  result.status = context.Health();
  if (result.status.ok()) {
    submission->enqueued = submission->program->Enqueue(
        submission->slots, submission->buffers, submission->options, now_,
        [this, &submission, &group](Signal before, int signal) {
          completions_.Push([on = submission->on, group, signal,
                             before = std::make_shared<Signal>(std::move(before))] {
            RaiseAfter(*on->context, *before, *group, signal);
          });
        });
  }
  // At once, because another device's thread may be waiting for a signal that will not come.
  if (!result.status.ok() && group != nullptr) group->Abort(result.status);
  completions_.Push([this, submission = std::move(submission)] { End(*submission); });
}

void HsaDevice::RaiseAfter(Context& context, const Signal& before, SignalGroup& group, int signal) {
  const absl::Status status = context.Await(before.get());
  if (status.ok()) {
    group.Raise(signal);
  } else {
    group.Abort(status);
  }
}

void HsaDevice::End(Submission& submission) {
  Enqueued& enqueued = submission.enqueued;
  SubmitResult& result = enqueued.result;
  SignalGroup* group = submission.options.group.get();
  Context& context = *submission.on->context;
  if (result.status.ok()) {
    result.status = context.Await(enqueued.end.get());
    if (!result.status.ok() && group != nullptr) group->Abort(result.status);
  } else {
    // Work enqueued before the error still uses the buffers that `done` releases.
    Drain(context);
  }
  const SteadyTime end = now_();
  // Excludes the time of the list before it.
  result.seconds = Seconds(std::max(submission.start, last_end_), end);
  last_end_ = end;
  if (result.status.ok()) {
    for (const Enqueued::Timed& timed : enqueued.timed) {
      result.command_seconds[timed.command] +=
          timed.copies > 0 ? timed.copies * context.CopySeconds(timed.signal.get())
                           : context.DispatchSeconds(timed.signal.get());
    }
  } else {
    result.command_seconds.clear();
  }
  enqueued.timed.clear();
  enqueued.between.clear();
  enqueued.end = Signal();
  submission.program->GiveBack(std::move(enqueued.replay));
  submission.program = nullptr;
  in_flight_.End();
  submission.done(std::move(result));
  in_flight_.Report();
}

void HsaDevice::Drain(Context& context) {
  const auto taken = context.TakeSignal(1);
  if (!taken.ok()) return;
  const Signal signal(&context, *taken);
  const Packet packet = BarrierPacket({}, signal.get());
  if (context.Push({&packet, 1}).ok()) context.Await(signal.get()).IgnoreError();
}

absl::StatusOr<char*> HsaDevice::AddressOf(const Opened& on, const Buffer& buffer) const {
  const auto* mine = dynamic_cast<const HsaBuffer*>(&buffer);
  if (mine != nullptr) {
    const bool ours = mine->context() == on.context.get();
    const bool lent = mine->context()->agent().handle != on.context->agent().handle &&
                      mine->context()->IsOpenTo(on.context->agent()) &&
                      mine->context()->Health().ok();
    if (ours || lent) return mine->address();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the buffer is not one of ", info_.name, ", or was lost with it"));
}

absl::Status HsaDevice::StartCopyToDevice(Buffer& destination, int64_t offset,
                                          absl::Span<const char> source, CopyDone done) {
  std::shared_ptr<const Opened> on = opened();
  const auto address = AddressOf(*on, destination);
  if (!address.ok()) return address.status();
  const auto size = static_cast<int64_t>(source.size());
  if (absl::Status status = CheckCopy("copy to", destination, offset, size); !status.ok())
    return status;
  if (absl::Status status = on->context->Health(); !status.ok()) return status;
  char* const to = *address + offset;
  StartCopy(
      *address, [on, to, source] { return on->staging->ToDevice(to, source); }, std::move(done));
  return absl::OkStatus();
}

absl::Status HsaDevice::StartCopyToHost(const Buffer& source, int64_t offset,
                                        absl::Span<char> destination, CopyDone done) {
  std::shared_ptr<const Opened> on = opened();
  const auto address = AddressOf(*on, source);
  if (!address.ok()) return address.status();
  const auto size = static_cast<int64_t>(destination.size());
  if (absl::Status status = CheckCopy("copy from", source, offset, size); !status.ok())
    return status;
  if (absl::Status status = on->context->Health(); !status.ok()) return status;
  const char* from = *address + offset;
  StartCopy(
      nullptr, [on, from, destination] { return on->staging->ToHost(destination, from); },
      std::move(done));
  return absl::OkStatus();
}

void HsaDevice::StartCopy(char* written, std::function<absl::Status()> copy, CopyDone done) {
  in_flight_.StartCopy(written);
  copies_.Push([this, written, copy = std::move(copy), done = std::move(done)] {
    done(copy());
    in_flight_.ReportCopy(written);
  });
}

absl::Status HsaDevice::Synchronize() {
  submissions_.Wait();
  completions_.Wait();
  copies_.Wait();
  return Health();
}

absl::Status HsaDevice::Health() { return opened()->context->Health(); }

absl::Status HsaDevice::Revive() {
  const std::shared_ptr<const Opened> lost = opened();
  if (lost->context->Health().ok()) return absl::OkStatus();
  // When everything is reported, the threads no longer use it.
  in_flight_.AwaitAll();
  auto fresh = OpenContext(lost->context->shared_hsa(), lost->context->facts(), info_, peers_);
  const absl::Status works = fresh.ok() ? (*fresh)->context->Try() : fresh.status();
  if (!works.ok()) {
    return absl::UnavailableError(
        absl::StrCat(works.message(), "; if this does not change, restart kilnd"));
  }
  absl::MutexLock lock(&opened_mutex_);
  opened_ = *std::move(fresh);
  return absl::OkStatus();
}

}  // namespace kiln::drivers::hsa
