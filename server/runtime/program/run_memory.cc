#include "server/runtime/program/run_memory.h"

#include <utility>

#include "proto/check/check.h"

namespace kiln::runtime {

absl::StatusOr<std::shared_ptr<JointMemory>> JointMemory::Make(
    const ShardedProgram& program, std::shared_ptr<const LoadedProgram> loaded) {
  auto memory = std::make_shared<JointMemory>();
  const auto allocate = [](ManagedDevice& device, int64_t bytes,
                           std::unique_ptr<drivers::Buffer>* buffer) {
    auto made = device.pool()->AllocateBytes(bytes);
    if (!made.ok()) return device.AfterFailure(made.status());
    *buffer = *std::move(made);
    return absl::OkStatus();
  };
  for (int i = 0; i < program.size(); ++i) {
    ManagedDevice& device = program.device(i);
    Member& member = memory->members.emplace_back();
    member.pool = device.pool();
    absl::Status status = allocate(device, program.published_bytes(), &member.published);
    if (status.ok()) status = allocate(device, loaded->members[i].mirror_bytes, &member.mirror);
    if (status.ok() && program.arena_bytes(i) > 0)
      status = allocate(device, program.arena_bytes(i), &member.arena);
    if (!status.ok()) return status;
  }
  memory->staging = drivers::HostBuffer::Make(loaded->staging_bytes);
  if (memory->staging == nullptr)
    return absl::ResourceExhaustedError("no host memory to exchange values between devices");
  memory->loaded = std::move(loaded);
  return memory;
}

JointMemory::~JointMemory() {
  for (Member& member : members) {
    for (auto* buffer : {&member.arena, &member.published, &member.mirror})
      if (*buffer) member.pool->Free(std::move(*buffer));
  }
}

absl::Status RunMemory::Reserve(Program& program,
                                const std::shared_ptr<const LoadedProgram>& loaded,
                                absl::Span<const std::shared_ptr<buffers::Account>> accounts) {
  const ShardedProgram& sharded = program.sharded();
  KILN_CHECK(charges_.empty() && arena_ == nullptr && joint_ == nullptr);
  KILN_CHECK_GE(accounts.size(), sharded.size());
  KILN_CHECK_EQ(loaded->members.size(), sharded.size());
  for (int i = 0; i < sharded.size(); ++i) {
    const int64_t bytes =
        sharded.arena_bytes(i) + sharded.published_bytes() + loaded->members[i].mirror_bytes;
    if (bytes == 0) continue;
    auto charge = accounts[i]->AddArena(bytes);
    if (!charge.ok()) return charge.status();
    charges_.push_back(*std::move(charge));
  }
  if (sharded.is_joint()) {
    auto memory = program.ReserveJointMemory(loaded);
    if (!memory.ok()) return memory.status();
    joint_ = *std::move(memory);
  } else if (program.arena_bytes() > 0) {
    auto arena = program.device().arenas().Reserve(program.arena_bytes());
    if (!arena.ok()) return program.device().AfterFailure(arena.status());
    arena_ = *std::move(arena);
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> RunMemory::Take(const Program& program, bool hold) {
  KILN_CHECK(!is_held_);
  if (joint_ != nullptr) {
    if (joint_->is_held) return false;
    joint_->is_held = is_held_ = hold;
  } else if (arena_ != nullptr) {
    auto arena = program.device().arenas().Take(program.arena_bytes(), hold);
    if (!arena.ok()) return program.device().AfterFailure(arena.status());
    if (*arena == nullptr) return false;
    arena_ = *std::move(arena);
    is_held_ = hold;
  }
  return true;
}

void RunMemory::Release(const Program& program) {
  if (!std::exchange(is_held_, false)) return;
  KILN_CHECK(joint_ != nullptr || arena_ != nullptr);
  if (joint_ == nullptr) return program.device().arenas().Release(*arena_);
  KILN_CHECK(joint_->is_held);
  joint_->is_held = false;
  for (const ShardedProgram::Member& member : program.sharded().members())
    member.device->dispatcher().ReleaseHeld();
}

void RunMemory::Drop() {
  // Not checked here: another member's turn may call Release meanwhile, which then changes nothing.
  arena_.reset();
  joint_.reset();
  charges_.clear();
}

void RunMemory::AddSlots(const ShardedProgram& program, const LoadedProgram& loaded, int member,
                         Slots* slots) const {
  using Kind = compiler::Slot::Kind;
  // Every slot needs a buffer, even if the list does not name it. Such slots get a buffer that is
  // only read: commands on a buffer that is written and is in two slots would run one after
  // another.
  drivers::Buffer* const unnamed = loaded.members[member].place.get();
  const std::vector<compiler::Slot>& own_slots = program.compiled(member).slots;
  for (size_t i = slots->size(); i < own_slots.size(); ++i) {
    if (own_slots[i].kind == Kind::kArena) {
      KILN_CHECK(joint_ != nullptr || arena_ != nullptr);
      slots->push_back(joint_ ? joint_->members[member].arena.get() : arena_->buffer());
    } else {
      // kPlace, or kPublished, instead of which the list uses the published slots of all devices.
      slots->push_back(unnamed);
    }
  }
  if (joint_ == nullptr) return;
  const JointMemory::Member& own = joint_->members[member];
  drivers::Device& device = program.device(member).device();
  for (const JointMemory::Member& other : joint_->members) {
    const bool is_reached = &other == &own || device.CanReach(*other.published);
    slots->push_back(is_reached ? other.published.get() : unnamed);
  }
  slots->push_back(own.mirror.get());
  slots->push_back(loaded.members[member].uses_staging
                       ? static_cast<drivers::Buffer*>(joint_->staging.get())
                       : own.mirror.get());
  KILN_CHECK_EQ(slots->size(), own_slots.size() + joint_->members.size() + 2);
}

}  // namespace kiln::runtime
