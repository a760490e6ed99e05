// Runs a sharded program on simulated devices. Each has its own memory, runs as far as it can in
// any order, and waits at the barriers of its group.
#ifndef KILN_COMPILER_SHARD_TESTING_SIMULATE_H_
#define KILN_COMPILER_SHARD_TESTING_SIMULATE_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/graph/graph.h"
#include "compiler/ops/host_tensor.h"
#include "compiler/shard/program.h"

namespace kiln::shard {

// Returns the coordinate of a device along each axis. There are graph::NumDevices devices.
std::vector<int64_t> PlaceOf(const graph::Mesh& mesh, int64_t device);
// MemberOf returns the device that is number `member` in `device`'s group (mesh axes); NumberIn
// returns the number of `device` in its group.
int64_t MemberOf(const graph::Mesh& mesh, const std::vector<int>& group, int64_t device,
                 int64_t member);
int64_t NumberIn(const graph::Mesh& mesh, const std::vector<int>& group, int64_t device);

// PartOf returns a device's part of a tensor with this layout, and PutTogether the tensor made of
// all devices' parts. INTERNAL if devices that should have the same bytes do not.
ops::HostTensor PartOf(const ops::HostTensor& whole, const graph::Mesh& mesh,
                       const graph::Spec& spec, int64_t device);
absl::StatusOr<ops::HostTensor> PutTogether(const std::vector<ops::HostTensor>& parts,
                                            const ir::Shape& shape, const graph::Mesh& mesh,
                                            const graph::Spec& spec);

// A barrier of the groups along `axes`, between steps. RunInSomeOrder takes the steps of all
// devices in an order that `seed` chooses, as far as the barriers allow.
struct Meetings {
  int step = 0;  // the group meets before this step; the number of steps: at the end
  std::vector<int> axes;
};
absl::Status RunInSomeOrder(const graph::Mesh& mesh, int steps,
                            const std::vector<Meetings>& meetings, uint64_t seed,
                            const std::function<absl::Status(int64_t device, int step)>& run);

// Returns the graph's outputs, then its updates, computed by the reference interpreter on each
// device. Requires: `graph` has a mesh, and `program` is its sharded program.
absl::StatusOr<std::vector<ops::HostTensor>> Simulate(const graph::Graph& graph,
                                                      const Program& program,
                                                      absl::Span<const ops::HostTensor> inputs,
                                                      uint64_t seed);

}  // namespace kiln::shard

#endif  // KILN_COMPILER_SHARD_TESTING_SIMULATE_H_
