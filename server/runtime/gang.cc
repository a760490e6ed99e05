#include "server/runtime/gang.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "server/runtime/gang_recorder.h"

namespace kiln::runtime {
namespace {

using compiler::Argument;
using compiler::CompiledProgram;
using compiler::DeviceGroup;
using compiler::Slot;

// Parts of mirrors and staging memory begin at multiples of this, which suits all devices.
constexpr int64_t kPartAlignment = 256;

int FindSlot(const CompiledProgram& program, Slot::Kind kind) {
  for (size_t i = 0; i < program.slots.size(); ++i)
    if (program.slots[i].kind == kind) return static_cast<int>(i);
  return -1;
}

int64_t SlotBytes(const CompiledProgram& program, Slot::Kind kind) {
  const int slot = FindSlot(program, kind);
  return slot < 0 ? 0 : program.slots[slot].bytes;
}

}  // namespace

int Gang::SizeOf(const DeviceGroup& group) const {
  int64_t size = 1;
  for (const int axis : group.mesh_axes) size *= mesh_.axes[axis].size;
  return static_cast<int>(size);
}

int Gang::NumberIn(int member, const DeviceGroup& group) const {
  std::vector<int64_t> place(mesh_.axes.size());
  int64_t left = member;
  for (size_t axis = mesh_.axes.size(); axis-- > 0;) {
    place[axis] = left % mesh_.axes[axis].size;
    left /= mesh_.axes[axis].size;
  }
  int64_t number = 0;
  for (const int axis : group.mesh_axes) number = number * mesh_.axes[axis].size + place[axis];
  return static_cast<int>(number);
}

int Gang::MemberOf(int member, const DeviceGroup& group, int number) const {
  std::vector<int64_t> stride(mesh_.axes.size(), 1);
  for (size_t axis = mesh_.axes.size(); axis-- > 1;)
    stride[axis - 1] = stride[axis] * mesh_.axes[axis].size;
  int64_t result = member;
  int64_t left = number;
  for (size_t i = group.mesh_axes.size(); i-- > 0;) {
    const int axis = group.mesh_axes[i];
    const int64_t size = mesh_.axes[axis].size;
    result += (left % size - result / stride[axis] % size) * stride[axis];
    left /= size;
  }
  return static_cast<int>(result);
}

std::vector<int> Gang::distinct() const {
  std::vector<int> found;
  for (int i = 0; i < size(); ++i) {
    const bool is_known = std::any_of(found.begin(), found.end(), [&](int known) {
      return members_[known].compiled == members_[i].compiled;
    });
    if (!is_known) found.push_back(i);
  }
  return found;
}

int64_t Gang::published_bytes() const {
  return SlotBytes(*members_.front().compiled, Slot::Kind::kPublished);
}

int64_t Gang::part_bytes() const {
  return (published_bytes() + kPartAlignment - 1) / kPartAlignment * kPartAlignment;
}

int64_t Gang::scratch_bytes(int member) const {
  const CompiledProgram& program = *members_[member].compiled;
  return SlotBytes(program, Slot::Kind::kArena) + published_bytes();
}

int64_t Gang::exchanged_bytes() const {
  int64_t bytes = 0;
  for (int member = 0; member < size(); ++member) {
    const CompiledProgram& program = *members_[member].compiled;
    for (const compiler::KernelCall& call : program.calls) {
      for (const Argument& argument : call.arguments) {
        const bool is_others = argument.member >= 0 &&
                               argument.member != NumberIn(member, program.groups[argument.group]);
        if (is_others) bytes += argument.bytes;
      }
    }
  }
  return bytes;
}

int64_t Gang::Loaded::host_bytes() const {
  int64_t bytes = staging_bytes;
  for (const OnDevice& member : members) bytes += member.list->host_bytes();
  return bytes;
}

bool Gang::Loaded::lost() const {
  return std::any_of(members.begin(), members.end(),
                     [](const OnDevice& member) { return member.life != member.pool->life(); });
}

absl::StatusOr<std::shared_ptr<const Gang::Loaded>> Gang::OnDevices() {
  absl::MutexLock lock(&loading_mutex_);
  if (loaded_ != nullptr && !loaded_->lost()) return loaded_;
  auto loaded = LoadNow();
  if (loaded.ok()) loaded_ = *loaded;
  return loaded;
}

absl::StatusOr<std::unique_ptr<drivers::Buffer>> Gang::MakePlace(int member) const {
  std::vector<int64_t> place(std::max<size_t>(mesh_.axes.size(), 1));
  for (size_t axis = 0; axis < mesh_.axes.size(); ++axis)
    place[axis] = NumberIn(member, {{static_cast<int>(axis)}});
  ManagedDevice& device = *members_[member].device;
  const auto bytes = static_cast<int64_t>(place.size() * sizeof(int64_t));
  auto buffer = device.pool()->AllocateBytes(bytes);
  if (!buffer.ok()) return device.AfterFailure(buffer.status());
  // The buffer has not been used before, so the copy does not wait for work on the device.
  absl::Notification ended;
  absl::Status copied;
  const absl::Status started = device.device().StartCopyToDevice(
      **buffer, 0, {reinterpret_cast<const char*>(place.data()), static_cast<size_t>(bytes)},
      [&](const absl::Status& status) {
        copied = status;
        ended.Notify();
      });
  if (started.ok()) ended.WaitForNotification();
  if (started.ok() && copied.ok()) return buffer;
  if (!started.ok()) copied = started;
  device.pool()->Free(*std::move(buffer));
  return device.AfterFailure(copied);
}

absl::StatusOr<std::shared_ptr<const Gang::Loaded>> Gang::LoadNow() const {
  auto result = std::make_shared<Loaded>();
  for (int i = 0; i < size(); ++i) {
    ManagedDevice& device = *members_[i].device;
    Loaded::OnDevice member;
    member.pool = device.pool();
    member.life = member.pool->life();
    auto place = MakePlace(i);
    if (!place.ok()) return place.status();
    member.place = *std::move(place);
    for (const compiler::CompiledKernel& kernel : members_[i].compiled->kernels) {
      auto loaded = device.device().LoadKernel(kernel.image);
      if (!loaded.ok()) return device.AfterFailure(loaded.status());
      member.kernels.push_back(*std::move(loaded));
    }
    result->members.push_back(std::move(member));
  }
  // A device that reaches this small buffer reaches all memory of the other device.
  std::vector<std::vector<bool>>& reaches = result->reaches;
  reaches.assign(size(), std::vector<bool>(size(), true));
  for (int from = 0; from < size(); ++from) {
    for (int to = 0; to < size(); ++to) {
      reaches[from][to] = members_[from].device->device().CanReach(*result->members[to].place);
      if (reaches[from][to] || published_bytes() == 0) continue;
      result->members[from].mirror_bytes = result->staging_bytes = size() * part_bytes();
      result->members[from].uses_staging = result->members[to].uses_staging = true;
    }
  }
  for (int i = 0; i < size(); ++i) {
    Loaded::OnDevice& member = result->members[i];
    GangRecording recording = RecordGang(*this, *result, i);
    member.command_of_call = std::move(recording.command_of_call);
    auto list = members_[i].device->device().Prepare(std::move(recording.list));
    if (!list.ok()) return members_[i].device->AfterFailure(list.status());
    member.list = *std::move(list);
  }
  result->signals = std::make_shared<drivers::Signals>(
      std::max(static_cast<int>(members_.front().compiled->exchanges.size()) * size(), 1));
  return result;
}

Gang::Memory::~Memory() {
  for (OnDevice& member : members) {
    for (auto& buffer : member.slots)
      if (buffer) member.pool->Free(std::move(buffer));
    if (member.published) member.pool->Free(std::move(member.published));
    if (member.mirror) member.pool->Free(std::move(member.mirror));
  }
}

absl::StatusOr<std::shared_ptr<Gang::Memory>> Gang::Reserve(
    const std::shared_ptr<const Loaded>& loaded) {
  absl::MutexLock lock(&loading_mutex_);
  if (auto memory = memory_.lock(); memory && memory->loaded == loaded) return memory;
  // Memory made for lost parts must not replace the memory of parts loaded since.
  for (const Loaded::OnDevice& member : loaded->members)
    if (member.life != member.pool->life()) return member.pool->LostError();
  auto memory = std::make_shared<Memory>();
  memory->loaded = loaded;
  const auto allocate = [](ManagedDevice& device, int64_t bytes,
                           std::unique_ptr<drivers::Buffer>* buffer) {
    auto made = device.pool()->AllocateBytes(bytes);
    if (!made.ok()) return device.AfterFailure(made.status());
    *buffer = *std::move(made);
    return absl::OkStatus();
  };
  for (int i = 0; i < size(); ++i) {
    ManagedDevice& device = *members_[i].device;
    const CompiledProgram& program = *members_[i].compiled;
    Memory::OnDevice& member = memory->members.emplace_back();
    member.pool = device.pool();
    member.slots.resize(program.slots.size());
    absl::Status status = allocate(device, published_bytes(), &member.published);
    if (status.ok()) status = allocate(device, loaded->members[i].mirror_bytes, &member.mirror);
    if (const int arena = FindSlot(program, Slot::Kind::kArena); arena >= 0 && status.ok())
      status = allocate(device, program.slots[arena].bytes, &member.slots[arena]);
    if (!status.ok()) return status;
  }
  memory->staging = drivers::HostBuffer::Make(loaded->staging_bytes);
  if (memory->staging == nullptr)
    return absl::ResourceExhaustedError("no host memory to exchange values between devices");
  memory_ = memory;
  return memory;
}

void Gang::AddSlots(const Loaded& loaded, const Memory& memory, int member,
                    std::vector<drivers::Buffer*>* slots) const {
  const CompiledProgram& program = *members_[member].compiled;
  const Memory::OnDevice& own = memory.members[member];
  // Every slot needs a buffer, even if the list does not name it. Such slots get a buffer that is
  // only read: commands on a buffer that is written and is in two slots would run one after
  // another.
  drivers::Buffer* const unnamed = loaded.members[member].place.get();
  for (size_t i = 0; i < program.slots.size(); ++i) {
    if (program.slots[i].kind == Slot::Kind::kPlace) {
      slots->push_back(loaded.members[member].place.get());
    } else if (program.slots[i].kind == Slot::Kind::kPublished) {
      slots->push_back(unnamed);  // the list uses the published slots of all devices instead
    } else if (program.slots[i].kind == Slot::Kind::kArena) {
      slots->push_back(own.slots[i].get());
    }
  }
  drivers::Device& device = members_[member].device->device();
  for (const Memory::OnDevice& other : memory.members) {
    const bool is_reached = &other == &own || device.CanReach(*other.published);
    slots->push_back(is_reached ? other.published.get() : unnamed);
  }
  slots->push_back(own.mirror.get());
  slots->push_back(loaded.members[member].uses_staging
                       ? static_cast<drivers::Buffer*>(memory.staging.get())
                       : own.mirror.get());
}

}  // namespace kiln::runtime
