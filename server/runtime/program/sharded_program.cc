#include "server/runtime/program/sharded_program.h"

#include <algorithm>
#include <utility>

#include "proto/check/check.h"

namespace kiln::runtime {
namespace {

using compiler::Argument;
using compiler::CompiledProgram;
using compiler::DeviceGroup;
using compiler::Slot;

// Parts of mirrors and staging memory begin at multiples of this, which suits all devices.
constexpr int64_t kPartAlignment = 256;

// Returns the size of the program's slot of this kind; 0 if it has none.
int64_t SlotBytes(const CompiledProgram& program, Slot::Kind kind) {
  for (const Slot& slot : program.slots)
    if (slot.kind == kind) return slot.bytes;
  return 0;
}

int64_t PublishedBytes(const std::vector<ShardedProgram::Member>& members) {
  KILN_CHECK(!members.empty());
  for (const ShardedProgram::Member& member : members)
    KILN_CHECK(member.device != nullptr && member.compiled != nullptr);
  return SlotBytes(*members.front().compiled, Slot::Kind::kPublished);
}

}  // namespace

ShardedProgram::ShardedProgram(graph::Mesh mesh, std::vector<Member> members)
    : mesh_(std::move(mesh)),
      members_(std::move(members)),
      published_bytes_(PublishedBytes(members_)) {
  KILN_CHECK_EQ(members_.size(), graph::NumDevices(mesh_));
  for (const Member& member : members_)
    arena_bytes_.push_back(SlotBytes(*member.compiled, Slot::Kind::kArena));
}

ShardedProgram::ShardedProgram(ManagedDevice& device, CompiledProgram compiled)
    : ShardedProgram({},
                     {{&device, std::make_shared<const CompiledProgram>(std::move(compiled))}}) {}

std::vector<int64_t> ShardedProgram::PlaceOf(int member) const {
  std::vector<int64_t> place(mesh_.axes.size());
  int64_t left = member;
  for (size_t axis = mesh_.axes.size(); axis-- > 0;) {
    place[axis] = left % mesh_.axes[axis].size;
    left /= mesh_.axes[axis].size;
  }
  KILN_CHECK(left == 0 || mesh_.axes.empty()) << "member " << member;
  return place;
}

int ShardedProgram::SizeOf(const DeviceGroup& group) const {
  int64_t size = 1;
  for (const int axis : group.mesh_axes) size *= mesh_.axes[axis].size;
  return static_cast<int>(size);
}

int ShardedProgram::NumberIn(int member, const DeviceGroup& group) const {
  const std::vector<int64_t> place = PlaceOf(member);
  int64_t number = 0;
  for (const int axis : group.mesh_axes) number = number * mesh_.axes[axis].size + place[axis];
  return static_cast<int>(number);
}

int ShardedProgram::MemberOf(int member, const DeviceGroup& group, int number) const {
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
  KILN_CHECK_GE(result, 0);
  KILN_CHECK_LT(result, members_.size());
  return static_cast<int>(result);
}

std::vector<int> ShardedProgram::distinct() const {
  std::vector<int> found;
  for (int i = 0; i < size(); ++i) {
    const bool is_known = std::any_of(found.begin(), found.end(), [&](int known) {
      return members_[known].compiled == members_[i].compiled;
    });
    if (!is_known) found.push_back(i);
  }
  KILN_CHECK_EQ(found.front(), 0);
  return found;
}

int64_t ShardedProgram::part_bytes() const {
  return (published_bytes_ + kPartAlignment - 1) / kPartAlignment * kPartAlignment;
}

int64_t ShardedProgram::exchanged_bytes() const {
  int64_t bytes = 0;
  for (int member = 0; member < size(); ++member) {
    const CompiledProgram& program = compiled(member);
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

}  // namespace kiln::runtime
