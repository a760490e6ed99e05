// Runs what sharding made of a graph on devices that are only simulated: each has memory of its
// own, goes as far as it can in any order, and waits where its group meets.
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

// The number along each axis of a device, of which there are graph::NumDevices.
std::vector<int64_t> PlaceOf(const graph::Mesh& mesh, int64_t device);
// The device that is `member` of the group (mesh axes) that `device` is in; and a device's number
// in its group.
int64_t MemberOf(const graph::Mesh& mesh, const std::vector<int>& group, int64_t device,
                 int64_t member);
int64_t NumberIn(const graph::Mesh& mesh, const std::vector<int>& group, int64_t device);

// What a device has of a tensor that lies so, and the tensor of what all devices have. INTERNAL
// where devices that should have the same have not.
ops::HostTensor PartOf(const ops::HostTensor& whole, const graph::Mesh& mesh,
                       const graph::Spec& spec, int64_t device);
absl::StatusOr<ops::HostTensor> PutTogether(const std::vector<ops::HostTensor>& parts,
                                            const ir::Shape& shape, const graph::Mesh& mesh,
                                            const graph::Spec& spec);

// What a device does between meetings, and which groups meet after it. Steps of all devices are
// taken in an order that `seed` chooses, as far as meetings allow.
struct Meetings {
  int step = 0;  // before which step the group meets; the number of steps: at the end
  std::vector<int> axes;
};
absl::Status RunInSomeOrder(const graph::Mesh& mesh, int steps,
                            const std::vector<Meetings>& meetings, uint64_t seed,
                            const std::function<absl::Status(int64_t device, int step)>& run);

// The graph's outputs, then its updates, by the reference interpreter on each device. `graph` has
// a mesh; `program` is what sharding makes of it.
absl::StatusOr<std::vector<ops::HostTensor>> Simulate(const graph::Graph& graph,
                                                      const Program& program,
                                                      absl::Span<const ops::HostTensor> inputs,
                                                      uint64_t seed);

}  // namespace kiln::shard

#endif  // KILN_COMPILER_SHARD_TESTING_SIMULATE_H_
