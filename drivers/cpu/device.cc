#include "drivers/cpu/device.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "drivers/common/check.h"
#include "drivers/cpu/buffer.h"
#include "drivers/cpu/execution.h"
#include "drivers/cpu/kernel.h"
#include "drivers/cpu/memory.h"
#include "drivers/cpu/prepared_list.h"

namespace kiln::drivers::cpu {
namespace {

// The most freed memory that is cached for reuse.
constexpr int64_t kCachedBytesMax = int64_t{2} << 30;

std::shared_ptr<CachingAllocator> MakeAllocator(const DeviceInfo& info) {
  return std::make_shared<CachingAllocator>(
      CachingAllocator::Options{.device = info.name,
                                .memory_bytes = info.memory_bytes,
                                .cache_bytes = std::min(info.memory_bytes / 4, kCachedBytesMax),
                                .allocate = AllocateMemory,
                                .release = ReleaseMemory});
}

absl::Status CheckAddressable(const Buffer& buffer) {
  if (buffer.host_pointer() != nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError("the buffer is in memory that a CPU device cannot address");
}

}  // namespace

CpuDevice::CpuDevice(DeviceInfo info, std::function<int()> cores, SteadyClock now,
                     std::shared_ptr<GroupThreads> group_threads)
    : info_(std::move(info)),
      allocator_(MakeAllocator(info_)),
      pool_({.name = absl::StrCat("kiln-", info_.name),
             .threads = info_.target.limits.compute_units,
             .cores = std::move(cores),
             .now = std::move(now)}),
      group_threads_(std::move(group_threads)),
      completions_(absl::StrCat("kiln-", info_.name, "-end")),
      submissions_(absl::StrCat("kiln-", info_.name)) {}

absl::StatusOr<std::unique_ptr<Buffer>> CpuDevice::Allocate(int64_t bytes) {
  bool is_new = false;
  absl::StatusOr<void*> memory = allocator_->Allocate(bytes, &is_new);
  if (!memory.ok()) return memory.status();
  Buffer::Contents contents = Buffer::Contents::kLeft;
  if (is_new) {
    contents = IsZeroAtFirst(CachingAllocator::SizeClass(bytes)) ? Buffer::Contents::kZero
                                                                 : Buffer::Contents::kUnknown;
  }
  return std::make_unique<CpuBuffer>(allocator_, *memory, bytes, contents);
}

absl::StatusOr<std::unique_ptr<LoadedKernel>> CpuDevice::LoadKernel(const KernelImage& image) {
  return CpuKernel::Load(image);
}

absl::StatusOr<std::unique_ptr<PreparedList>> CpuDevice::Prepare(CommandList list) {
  auto program = Program::Make(list, {pool_.threads(), info_.target.rates});
  if (!program.ok()) return program.status();
  return std::make_unique<CpuPreparedList>(*std::move(program));
}

absl::Status CpuDevice::Submit(PreparedList& list, absl::Span<Buffer* const> slots,
                               SubmitOptions options, std::function<void(SubmitResult)> done) {
  auto* prepared = dynamic_cast<CpuPreparedList*>(&list);
  if (prepared == nullptr)
    return absl::InvalidArgumentError("the list was not prepared by a CPU device");
  const std::shared_ptr<Program>& program = prepared->program();
  if (absl::Status status = CheckSlots(program->needs(), slots, options); !status.ok())
    return status;
  // Copied, since the caller's span is only valid during this call.
  std::vector<char*> addresses;
  addresses.reserve(slots.size());
  for (const Buffer* buffer : slots) {
    if (absl::Status status = CheckAddressable(*buffer); !status.ok()) return status;
    addresses.push_back(static_cast<char*>(buffer->host_pointer()));
  }
  // The program is shared, so the list may be destroyed before this runs.
  submissions_.Push(
      [this, program, addresses = std::move(addresses), options = std::move(options),
       done = std::move(done)]() mutable { Run(*program, addresses, options, std::move(done)); });
  return absl::OkStatus();
}

void CpuDevice::Run(Program& program, absl::Span<char* const> addresses,
                    const SubmitOptions& options, std::function<void(SubmitResult)> done) {
  Execution execution(program, addresses, options, pool_);
  if (group_threads_ != nullptr && program.needs().needs_group) {
    group_threads_->Run(execution);
  } else {
    execution.Finish();
  }
  SubmitResult result = std::move(execution.result());
  // Completions are reported in order. If nothing waits, the other thread would only add latency.
  if (submissions_.unfinished() == 1 && completions_.unfinished() == 0)
    return done(std::move(result));
  completions_.Push([done = std::move(done), result = std::move(result)] { done(result); });
}

absl::Status CpuDevice::StartCopyToDevice(Buffer& destination, int64_t offset,
                                          absl::Span<const char> source, CopyDone done) {
  if (absl::Status status = CheckAddressable(destination); !status.ok()) return status;
  if (absl::Status status = CheckCopy("copy to", destination, offset, source.size()); !status.ok())
    return status;
  if (!source.empty()) {
    std::memcpy(static_cast<char*>(destination.host_pointer()) + offset, source.data(),
                source.size());
  }
  done(absl::OkStatus());
  return absl::OkStatus();
}

absl::Status CpuDevice::StartCopyToHost(const Buffer& source, int64_t offset,
                                        absl::Span<char> destination, CopyDone done) {
  if (absl::Status status = CheckAddressable(source); !status.ok()) return status;
  if (absl::Status status = CheckCopy("copy from", source, offset, destination.size());
      !status.ok())
    return status;
  if (!destination.empty()) {
    std::memcpy(destination.data(), static_cast<const char*>(source.host_pointer()) + offset,
                destination.size());
  }
  done(absl::OkStatus());
  return absl::OkStatus();
}

absl::Status CpuDevice::Synchronize() {
  submissions_.Wait();
  completions_.Wait();
  return absl::OkStatus();
}

// A processor cannot be lost while the daemon runs.
absl::Status CpuDevice::Health() { return absl::OkStatus(); }

}  // namespace kiln::drivers::cpu
