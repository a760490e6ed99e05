#include "drivers/null/device.h"

#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "drivers/common/check.h"
#include "drivers/common/reissue.h"
#include "drivers/null/buffer.h"
#include "drivers/null/kernel.h"

namespace kiln::drivers::null {
namespace {

std::shared_ptr<CachingAllocator> MakeAllocator(const DeviceInfo& info) {
  return std::make_shared<CachingAllocator>(CachingAllocator::Options{
      .device = info.name,
      .memory_bytes = info.memory_bytes,
      .cache_bytes = info.memory_bytes / 4,
      // Size classes are multiples of 64, as aligned_alloc requires.
      .allocate = [](int64_t bytes) { return std::aligned_alloc(64, bytes); },
      .release = [](void* memory, int64_t bytes) { std::free(memory); }});
}

absl::Status CheckMine(const Buffer& buffer) {
  const auto* mine = dynamic_cast<const NullBuffer*>(&buffer);
  if (mine != nullptr && !mine->lost()) return absl::OkStatus();
  return absl::InvalidArgumentError("the buffer is not a null device's, or was lost with it");
}

char* AddressOf(const Buffer& buffer) { return static_cast<char*>(buffer.host_pointer()); }

// A real driver calls its vendor's library here.
class Issuer : public CommandIssuer {
 public:
  explicit Issuer(NullDevice& device) : device_(device) {}

  // A loss ends a list between two kernels, as on a real device.
  absl::Status Launch(const LoadedKernel& kernel, absl::Span<const BoundRange> arguments) override {
    return device_.Health();
  }
  absl::Status Copy(const BoundRange& source, const BoundRange& destination) override {
    std::memmove(AddressOf(*destination.buffer) + destination.offset,
                 AddressOf(*source.buffer) + source.offset, source.bytes);
    return absl::OkStatus();
  }
  absl::Status Fill(const BoundRange& destination, uint8_t value) override {
    std::memset(AddressOf(*destination.buffer) + destination.offset, value, destination.bytes);
    return absl::OkStatus();
  }
  absl::Status Signal(SignalGroup& group, int signal) override {
    group.Raise(signal);
    return absl::OkStatus();
  }
  absl::Status Wait(SignalGroup& group, int signal) override { return group.Wait(signal); }

 private:
  NullDevice& device_;
};

}  // namespace

NullDevice::NullDevice(DeviceInfo info, SteadyClock now, std::function<absl::Status()> fault)
    : info_(std::move(info)),
      now_(std::move(now)),
      fault_(std::move(fault)),
      allocator_(MakeAllocator(info_)),
      queue_(absl::StrCat("kiln-", info_.name)) {}

absl::StatusOr<std::unique_ptr<Buffer>> NullDevice::Allocate(int64_t bytes) {
  if (absl::Status status = Health(); !status.ok()) return status;
  absl::StatusOr<void*> memory = allocator_->Allocate(bytes);
  if (!memory.ok()) return memory.status();
  // Output that no kernel writes must read as zero, not as a previous owner's data.
  std::memset(*memory, 0, bytes);
  absl::MutexLock lock(&mutex_);
  return std::make_unique<NullBuffer>(allocator_, memory_lost_, *memory, bytes);
}

absl::StatusOr<std::unique_ptr<LoadedKernel>> NullDevice::LoadKernel(const KernelImage& image) {
  if (absl::Status status = Health(); !status.ok()) return status;
  if (absl::Status status = CheckImage(image, info_.target.architecture); !status.ok())
    return status;
  return std::make_unique<NullKernel>(image);
}

bool NullDevice::CanReach(const Buffer& buffer) const { return CheckMine(buffer).ok(); }

absl::StatusOr<std::unique_ptr<PreparedList>> NullDevice::Prepare(CommandList list) {
  absl::StatusOr<ListNeeds> needs = CheckCommandList(list);
  if (!needs.ok()) return needs.status();
  for (const Command& command : list.commands) {
    // CheckCommandList does not know drivers, so it accepts a kernel of another driver.
    const auto* launch = std::get_if<LaunchCommand>(&command);
    if (launch != nullptr && dynamic_cast<const NullKernel*>(launch->kernel) == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat("the kernel ", launch->kernel->image().name,
                                                     " was not loaded by a null device"));
    }
  }
  return std::make_unique<ReissuedList>(std::move(list), *std::move(needs));
}

absl::Status NullDevice::Submit(PreparedList& list, absl::Span<Buffer* const> slots,
                                SubmitOptions options, std::function<void(SubmitResult)> done) {
  const auto* prepared = dynamic_cast<const ReissuedList*>(&list);
  if (prepared == nullptr)
    return absl::InvalidArgumentError("the list was not prepared by a null device");
  if (absl::Status status = CheckSlots(prepared->needs(), slots, options); !status.ok())
    return status;
  for (size_t i = 0; i < slots.size(); ++i) {
    if (prepared->needs().IsHost(i)) continue;
    if (absl::Status status = CheckMine(*slots[i]); !status.ok()) return status;
  }
  queue_.Push([this, prepared, buffers = std::vector<Buffer*>(slots.begin(), slots.end()),
               options = std::move(options), done = std::move(done)] {
    SubmitResult result;
    if (result.status = Health(); result.status.ok()) {
      Issuer issuer(*this);
      result = prepared->Issue(buffers, options, issuer, now_);
    } else if (options.group != nullptr) {
      options.group->Abort(result.status);
    }
    done(std::move(result));
  });
  return absl::OkStatus();
}

absl::Status NullDevice::StartCopyToDevice(Buffer& destination, int64_t offset,
                                           absl::Span<const char> source, CopyDone done) {
  if (absl::Status status = Health(); !status.ok()) return status;
  if (absl::Status status = CheckMine(destination); !status.ok()) return status;
  if (absl::Status status = CheckCopy("copy to", destination, offset, source.size()); !status.ok())
    return status;
  if (!source.empty()) std::memcpy(AddressOf(destination) + offset, source.data(), source.size());
  done(absl::OkStatus());
  return absl::OkStatus();
}

absl::Status NullDevice::StartCopyToHost(const Buffer& source, int64_t offset,
                                         absl::Span<char> destination, CopyDone done) {
  if (absl::Status status = Health(); !status.ok()) return status;
  if (absl::Status status = CheckMine(source); !status.ok()) return status;
  if (absl::Status status = CheckCopy("copy from", source, offset, destination.size());
      !status.ok())
    return status;
  if (!destination.empty())
    std::memcpy(destination.data(), AddressOf(source) + offset, destination.size());
  done(absl::OkStatus());
  return absl::OkStatus();
}

absl::Status NullDevice::Synchronize() {
  queue_.Wait();
  return Health();
}

absl::Status NullDevice::Health() {
  const absl::Status fault = fault_();
  absl::MutexLock lock(&mutex_);
  if (lost_.ok() && !fault.ok())
    lost_ = absl::UnavailableError(absl::StrCat("the device is lost: ", fault.message()));
  return lost_;
}

absl::Status NullDevice::Revive() {
  if (absl::Status fault = fault_(); !fault.ok()) return fault;
  absl::MutexLock lock(&mutex_);
  if (lost_.ok()) return absl::OkStatus();
  *memory_lost_ = true;
  memory_lost_ = std::make_shared<std::atomic<bool>>(false);
  lost_ = absl::OkStatus();
  return absl::OkStatus();
}

}  // namespace kiln::drivers::null
