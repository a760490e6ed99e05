// A program as it was compiled for its devices: one, or those of a mesh.
#ifndef KILN_SERVER_RUNTIME_PROGRAM_SHARDED_PROGRAM_H_
#define KILN_SERVER_RUNTIME_PROGRAM_SHARDED_PROGRAM_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "compiler/compiler.h"
#include "compiler/graph/mesh.h"
#include "server/runtime/device/managed_device.h"

namespace kiln::runtime {

// Immutable. Thread-safe.
class ShardedProgram {
 public:
  // One for each place of the mesh, row-major. Equal targets share a compiled program, unless the
  // graph is in stages: then each place has a separate one.
  struct Member {
    ManagedDevice* device = nullptr;
    std::shared_ptr<const compiler::CompiledProgram> compiled;
  };

  // Requires: there is a member for each place; a mesh without axes has one place.
  ShardedProgram(graph::Mesh mesh, std::vector<Member> members);
  // A program on one device, of a graph without a mesh.
  ShardedProgram(ManagedDevice& device, compiler::CompiledProgram compiled);

  const graph::Mesh& mesh() const { return mesh_; }
  const std::vector<Member>& members() const { return members_; }
  int size() const { return static_cast<int>(members_.size()); }
  ManagedDevice& device(int member) const { return *members_[member].device; }
  const compiler::CompiledProgram& compiled(int member) const { return *members_[member].compiled; }
  // Returns the first member that runs each distinct compiled program, in order.
  std::vector<int> distinct() const;

  // Whether it has several lists, which are submitted together, since they may wait for each other.
  // A mesh of one device splits nothing and exchanges nothing.
  bool is_joint() const { return size() > 1; }
  // The memory that each device publishes for others.
  int64_t published_bytes() const { return published_bytes_; }
  // published_bytes() rounded up: mirrors and staging memory have a part for each device.
  int64_t part_bytes() const;
  // The memory for intermediate results on this device.
  int64_t arena_bytes(int member) const { return arena_bytes_[member]; }
  // The bytes that a run sends between all devices together.
  int64_t exchanged_bytes() const;

  // MemberOf returns the member with this number in `member`'s group; NumberIn returns the number
  // of `member` in its group.
  int MemberOf(int member, const compiler::DeviceGroup& group, int number) const;
  int NumberIn(int member, const compiler::DeviceGroup& group) const;
  int SizeOf(const compiler::DeviceGroup& group) const;
  // The coordinates of `member` in the mesh.
  std::vector<int64_t> PlaceOf(int member) const;

 private:
  const graph::Mesh mesh_;
  const std::vector<Member> members_;
  const int64_t published_bytes_;
  std::vector<int64_t> arena_bytes_;
};

}  // namespace kiln::runtime

#endif  // KILN_SERVER_RUNTIME_PROGRAM_SHARDED_PROGRAM_H_
