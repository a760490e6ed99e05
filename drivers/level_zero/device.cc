#include "drivers/level_zero/device.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "drivers/common/check.h"
#include "drivers/level_zero/buffer.h"
#include "drivers/level_zero/error.h"
#include "drivers/level_zero/kernel.h"

namespace kiln::drivers::level_zero {
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

absl::StatusOr<std::shared_ptr<const LevelZeroDevice::Opened>> LevelZeroDevice::OpenContext(
    std::shared_ptr<const Library> ze, const DeviceFacts& facts, const DeviceInfo& info) {
  auto context = Context::Make(std::move(ze), facts);
  if (!context.ok()) return context.status();
  auto staging = Staging::Make(*context);
  if (!staging.ok()) return staging.status();
  auto allocator = MakeAllocator(*context, info);
  return std::make_shared<const Opened>(
      Opened{*std::move(context), std::move(allocator), *std::move(staging)});
}

absl::StatusOr<std::unique_ptr<LevelZeroDevice>> LevelZeroDevice::Make(
    std::shared_ptr<const Library> ze, const DeviceFacts& facts, DeviceInfo info, SteadyClock now) {
  auto opened = OpenContext(ze, facts, info);
  if (!opened.ok()) return opened.status();
  return std::unique_ptr<LevelZeroDevice>(new LevelZeroDevice(
      std::move(ze), *std::move(opened), facts, std::move(info), std::move(now)));
}

LevelZeroDevice::LevelZeroDevice(std::shared_ptr<const Library> ze,
                                 std::shared_ptr<const Opened> opened, const DeviceFacts& facts,
                                 DeviceInfo info, SteadyClock now)
    : ze_(std::move(ze)),
      facts_(facts),
      info_(std::move(info)),
      now_(std::move(now)),
      last_end_(now_()),
      opened_(std::move(opened)),
      in_flight_(kInFlightMax),
      copies_(absl::StrCat("copy-", info_.name)),
      completions_(absl::StrCat("end-", info_.name)),
      submissions_(absl::StrCat("kiln-", info_.name)) {}

LevelZeroDevice::~LevelZeroDevice() {
  // A callback may submit more work, which needs both threads.
  in_flight_.AwaitAll();
}

std::shared_ptr<const LevelZeroDevice::Opened> LevelZeroDevice::opened() const {
  absl::MutexLock lock(&opened_mutex_);
  return opened_;
}

absl::StatusOr<std::unique_ptr<Buffer>> LevelZeroDevice::Allocate(int64_t bytes) {
  const std::shared_ptr<const Opened> on = opened();
  if (absl::Status status = on->context->Health(); !status.ok()) return status;
  if (const int64_t bytes_max = facts_.allocation_bytes_max; bytes > bytes_max) {
    return absl::ResourceExhaustedError(absl::StrCat(bytes, " bytes in one buffer were requested; ",
                                                     info_.name, " allows at most ", bytes_max));
  }
  absl::StatusOr<void*> memory = on->allocator->Allocate(bytes);
  if (!memory.ok()) {
    // A lost device has no memory either.
    const absl::Status health = on->context->AskHealth();
    return health.ok() ? memory.status() : health;
  }
  return std::make_unique<LevelZeroBuffer>(on->allocator, on->context.get(), *memory, bytes);
}

absl::StatusOr<std::unique_ptr<LoadedKernel>> LevelZeroDevice::LoadKernel(
    const KernelImage& image) {
  const std::shared_ptr<const Opened> on = opened();
  if (absl::Status status = on->context->AskHealth(); !status.ok()) return status;
  return LevelZeroKernel::Load(on->context, image);
}

bool LevelZeroDevice::CanReach(const Buffer& buffer) const {
  return AddressOf(*opened(), buffer).ok();
}

absl::StatusOr<std::unique_ptr<PreparedList>> LevelZeroDevice::Prepare(CommandList list) {
  const std::shared_ptr<const Opened> on = opened();
  if (absl::Status status = on->context->AskHealth(); !status.ok()) return status;
  auto program = Program::Make(on->context, std::move(list));
  if (!program.ok()) return program.status();
  return std::make_unique<LevelZeroPreparedList>(*std::move(program));
}

absl::Status LevelZeroDevice::Submit(PreparedList& list, absl::Span<Buffer* const> slots,
                                     SubmitOptions options,
                                     std::function<void(SubmitResult)> done) {
  auto* prepared = dynamic_cast<LevelZeroPreparedList*>(&list);
  if (prepared == nullptr)
    return absl::InvalidArgumentError("the list was not prepared by a Level Zero device");
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

void LevelZeroDevice::Start(std::shared_ptr<Submission> submission) {
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
        [this, &submission, &group](std::shared_ptr<Fence> before, int signal) {
          completions_.Push([on = submission->on, group, signal, before = std::move(before)] {
            RaiseAfter(*on->context, before.get(), *group, signal);
          });
        });
  }
  // At once, because another device's thread may be waiting for a signal that will not come.
  if (!result.status.ok() && group != nullptr) group->Abort(result.status);
  completions_.Push([this, submission = std::move(submission)] { End(*submission); });
}

void LevelZeroDevice::RaiseAfter(Context& context, const Fence* before, SignalGroup& group,
                                 int signal) {
  const absl::Status status = before == nullptr ? context.Health() : context.Await(*before);
  if (status.ok()) {
    group.Raise(signal);
  } else {
    group.Abort(status);
  }
}

void LevelZeroDevice::End(Submission& submission) {
  Enqueued& enqueued = submission.enqueued;
  SubmitResult& result = enqueued.result;
  SignalGroup* group = submission.options.group.get();
  Context& context = *submission.on->context;
  // Also after an error: executed work uses the buffers that `done` releases.
  const bool enqueued_all = result.status.ok();
  for (const std::shared_ptr<Fence>& fence : enqueued.fences) {
    const absl::Status ended = context.Await(*fence);
    if (result.status.ok()) result.status = ended;
  }
  if (enqueued_all && !result.status.ok() && group != nullptr) group->Abort(result.status);
  const SteadyTime end = now_();
  // Excludes the time of the list before it.
  result.seconds = Seconds(std::max(submission.start, last_end_), end);
  last_end_ = end;
  if (!result.status.ok()) {
    result.command_seconds.clear();
  } else if (submission.options.time_commands) {
    submission.program->AddCallSeconds(*enqueued.recording, &result.command_seconds);
  }
  enqueued.fences.clear();
  if (enqueued.recording != nullptr) enqueued.recording->in_use = false;
  enqueued.recording = nullptr;
  submission.program = nullptr;
  in_flight_.End();
  submission.done(std::move(result));
  in_flight_.Report();
}

absl::StatusOr<char*> LevelZeroDevice::AddressOf(const Opened& on, const Buffer& buffer) const {
  const auto* mine = dynamic_cast<const LevelZeroBuffer*>(&buffer);
  if (mine != nullptr && mine->context() == on.context.get()) return mine->memory();
  return absl::InvalidArgumentError(
      absl::StrCat("the buffer is not one of ", info_.name, ", or was lost with it"));
}

absl::Status LevelZeroDevice::StartCopyToDevice(Buffer& destination, int64_t offset,
                                                absl::Span<const char> source, CopyDone done) {
  std::shared_ptr<const Opened> on = opened();
  const auto address = AddressOf(*on, destination);
  if (!address.ok()) return address.status();
  const auto size = static_cast<int64_t>(source.size());
  if (absl::Status status = CheckCopy("copy to", destination, offset, size); !status.ok())
    return status;
  if (absl::Status status = on->context->AskHealth(); !status.ok()) return status;
  char* const to = *address + offset;
  StartCopy(
      *address, [on, to, source] { return on->staging->ToDevice(to, source); }, std::move(done));
  return absl::OkStatus();
}

absl::Status LevelZeroDevice::StartCopyToHost(const Buffer& source, int64_t offset,
                                              absl::Span<char> destination, CopyDone done) {
  std::shared_ptr<const Opened> on = opened();
  const auto address = AddressOf(*on, source);
  if (!address.ok()) return address.status();
  const auto size = static_cast<int64_t>(destination.size());
  if (absl::Status status = CheckCopy("copy from", source, offset, size); !status.ok())
    return status;
  if (absl::Status status = on->context->AskHealth(); !status.ok()) return status;
  const char* const from = *address + offset;
  StartCopy(
      nullptr, [on, from, destination] { return on->staging->ToHost(destination, from); },
      std::move(done));
  return absl::OkStatus();
}

void LevelZeroDevice::StartCopy(char* written, std::function<absl::Status()> copy, CopyDone done) {
  in_flight_.StartCopy(written);
  copies_.Push([this, written, copy = std::move(copy), done = std::move(done)] {
    done(copy());
    in_flight_.ReportCopy(written);
  });
}

absl::Status LevelZeroDevice::Synchronize() {
  submissions_.Wait();
  completions_.Wait();
  copies_.Wait();
  return Health();
}

absl::Status LevelZeroDevice::Health() { return opened()->context->AskHealth(); }

absl::Status LevelZeroDevice::Revive() {
  if (Health().ok()) return absl::OkStatus();
  auto fresh = OpenContext(ze_, facts_, info_);
  absl::Status works = fresh.ok() ? (*fresh)->context->Try() : fresh.status();
  if (!works.ok()) {
    // Intel's driver does not guarantee that a process can continue after such an error.
    return absl::UnavailableError(
        absl::StrCat(works.message(), "; if this does not change, restart kilnd"));
  }
  absl::MutexLock lock(&opened_mutex_);
  opened_ = *std::move(fresh);
  return absl::OkStatus();
}

}  // namespace kiln::drivers::level_zero
