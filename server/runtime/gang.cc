#include "server/runtime/gang.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"

namespace kiln::runtime {
namespace {

using compiler::Argument;
using compiler::CompiledProgram;
using compiler::DeviceGroup;
using compiler::Slot;

// Mirrors and staging have a part for each device, at multiples of this, which suits all.
constexpr int64_t kPartAlignment = 256;

int64_t RoundUp(int64_t bytes) {
  return (bytes + kPartAlignment - 1) / kPartAlignment * kPartAlignment;
}

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

// Writes one device's list. Its slots are the program's, then each device's published memory, then
// the mirror, then the staging memory.
class GangRecorder {
 public:
  GangRecorder(const Gang& gang, const Gang::Loaded& loaded, int member,
               const std::vector<std::vector<bool>>& reaches)
      : gang_(gang),
        loaded_(loaded.members[member]),
        program_(*gang.members()[member].compiled),
        member_(member),
        reaches_(reaches),
        part_bytes_(RoundUp(gang.published_bytes())) {
    own_slots_ = static_cast<int>(program_.slots.size());
  }

  drivers::CommandList Record(std::vector<int>* command_of_call) {
    list_.num_slots = own_slots_ + gang_.size() + 2;
    if (loaded_.uses_staging) list_.host_slots = {staging_slot()};
    size_t exchange = 0;
    for (size_t i = 0; i < program_.calls.size(); ++i) {
      while (IsBefore(exchange, i)) AddExchange(exchange++);
      command_of_call->push_back(static_cast<int>(list_.commands.size()));
      drivers::LaunchCommand launch{loaded_.kernels[program_.calls[i].kernel].get(), {}};
      for (const Argument& argument : program_.calls[i].arguments)
        launch.arguments.push_back(RangeOf(argument));
      list_.commands.emplace_back(std::move(launch));
    }
    while (exchange < program_.exchanges.size()) AddExchange(exchange++);
    for (const CompiledProgram::Copy& copy : program_.copies) {
      list_.commands.emplace_back(
          drivers::CopyCommand{RangeOf(copy.source), RangeOf(copy.destination)});
    }
    return std::move(list_);
  }

 private:
  struct Range {
    int owner;
    int64_t offset;
    int64_t bytes;
    bool operator<(const Range& other) const {
      return std::tie(owner, offset, bytes) < std::tie(other.owner, other.offset, other.bytes);
    }
  };

  int mirror_slot() const { return own_slots_ + gang_.size(); }
  int staging_slot() const { return mirror_slot() + 1; }
  bool IsBefore(size_t exchange, size_t call) const {
    return exchange < program_.exchanges.size() &&
           program_.exchanges[exchange].before_call <= static_cast<int>(call);
  }
  // Whether everybody in the one group is in the exchange's.
  static bool Covers(const CompiledProgram& program, size_t exchange, int group) {
    const std::vector<int>& axes = program.groups[program.exchanges[exchange].group].mesh_axes;
    const std::vector<int>& needed = program.groups[group].mesh_axes;
    return std::all_of(needed.begin(), needed.end(), [&](int axis) {
      return std::find(axes.begin(), axes.end(), axis) != axes.end();
    });
  }

  // What `reader` reads of others behind this exchange and before the next one that its group takes
  // part in. Programs of different targets publish alike, but their kernels may read other ranges.
  std::set<Range> Reads(int reader, size_t exchange) const {
    const CompiledProgram& program = *gang_.members()[reader].compiled;
    const auto end_of = [&](int group) {
      for (size_t i = exchange + 1; i < program.exchanges.size(); ++i)
        if (Covers(program, i, group)) return static_cast<size_t>(program.exchanges[i].before_call);
      return program.calls.size();
    };
    std::vector<size_t> ends;  // by group; nothing is read where the exchange does not cover it
    for (size_t group = 0; group < program.groups.size(); ++group) {
      const auto number = static_cast<int>(group);
      ends.push_back(Covers(program, exchange, number) ? end_of(number) : 0);
    }
    std::set<Range> ranges;
    for (size_t i = program.exchanges[exchange].before_call; i < program.calls.size(); ++i) {
      for (const Argument& argument : program.calls[i].arguments) {
        if (argument.member < 0 || i >= ends[argument.group]) continue;
        const DeviceGroup& devices = program.groups[argument.group];
        const int owner = gang_.MemberOf(reader, devices, argument.member);
        if (owner == reader) continue;
        ranges.insert({owner, argument.offset + argument.stride * gang_.NumberIn(reader, devices),
                       argument.bytes});
      }
    }
    return ranges;
  }

  void AddExchange(size_t exchange) {
    const int group = program_.exchanges[exchange].group;
    const DeviceGroup& devices = program_.groups[group];
    const int size = gang_.SizeOf(devices);
    std::set<Range> wanted;  // of this device, by those who cannot reach it
    for (int number = 0; number < size; ++number) {
      const int other = gang_.MemberOf(member_, devices, number);
      if (other == member_ || reaches_[other][member_]) continue;
      for (const Range& range : Reads(other, exchange))
        if (range.owner == member_) wanted.insert(range);
    }
    for (const Range& range : wanted) {
      list_.commands.emplace_back(drivers::CopyCommand{
          {own_slots_ + member_, range.offset, range.bytes},
          {staging_slot(), member_ * part_bytes_ + range.offset, range.bytes}});
    }
    // Numbered by exchange and device, so that each is raised once in a run.
    const int first = static_cast<int>(exchange) * gang_.size();
    list_.commands.emplace_back(drivers::SignalCommand{first + member_});
    for (int number = 0; number < size; ++number) {
      const int other = gang_.MemberOf(member_, devices, number);
      if (other != member_) list_.commands.emplace_back(drivers::WaitCommand{first + other});
    }
    for (const Range& range : Reads(member_, exchange)) {
      if (reaches_[member_][range.owner]) continue;
      const int64_t offset = range.owner * part_bytes_ + range.offset;
      list_.commands.emplace_back(drivers::CopyCommand{{staging_slot(), offset, range.bytes},
                                                       {mirror_slot(), offset, range.bytes}});
    }
  }

  drivers::SlotRange RangeOf(const Argument& argument) const {
    const bool is_published =
        program_.slots[argument.slot].kind == compiler::Slot::Kind::kPublished;
    int owner = member_;
    int64_t offset = argument.offset;
    if (argument.member >= 0) {
      const DeviceGroup& devices = program_.groups[argument.group];
      owner = gang_.MemberOf(member_, devices, argument.member);
      offset += argument.stride * gang_.NumberIn(member_, devices);
    }
    if (!is_published) return {argument.slot, offset, argument.bytes};
    if (reaches_[member_][owner]) return {own_slots_ + owner, offset, argument.bytes};
    return {mirror_slot(), owner * part_bytes_ + offset, argument.bytes};
  }

  const Gang& gang_;
  const Gang::Loaded::OnDevice& loaded_;
  const CompiledProgram& program_;
  const int member_;
  const std::vector<std::vector<bool>>& reaches_;
  const int64_t part_bytes_;
  int own_slots_ = 0;
  drivers::CommandList list_;
};

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
  // Nobody has used the buffer before, so it need not wait for what runs on the device.
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
  // Whoever reaches that small buffer reaches all of the device's.
  std::vector<std::vector<bool>> reaches(size(), std::vector<bool>(size(), true));
  for (int from = 0; from < size(); ++from) {
    for (int to = 0; to < size(); ++to) {
      reaches[from][to] = members_[from].device->device().CanReach(*result->members[to].place);
      if (reaches[from][to] || published_bytes() == 0) continue;
      result->members[from].mirror_bytes = result->staging_bytes =
          size() * RoundUp(published_bytes());
      result->members[from].uses_staging = result->members[to].uses_staging = true;
    }
  }
  for (int i = 0; i < size(); ++i) {
    Loaded::OnDevice& member = result->members[i];
    GangRecorder recorder(*this, *result, i, reaches);
    auto list = members_[i].device->device().Prepare(recorder.Record(&member.command_of_call));
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
    return absl::ResourceExhaustedError(
        "no host memory through which devices hand each other values");
  memory_ = memory;
  return memory;
}

void Gang::AddSlots(const Loaded& loaded, const Memory& memory, int member,
                    std::vector<drivers::Buffer*>* slots) const {
  const CompiledProgram& program = *members_[member].compiled;
  const Memory::OnDevice& own = memory.members[member];
  // Every slot has a buffer, also those that the list does not name: one that is only read, since
  // commands on memory that is written and stands in two slots run one after another.
  drivers::Buffer* const unnamed = loaded.members[member].place.get();
  for (size_t i = 0; i < program.slots.size(); ++i) {
    if (program.slots[i].kind == Slot::Kind::kPlace) {
      slots->push_back(loaded.members[member].place.get());
    } else if (program.slots[i].kind == Slot::Kind::kPublished) {
      slots->push_back(unnamed);  // the list names it among all devices'
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
