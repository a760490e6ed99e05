// How a value that lies one way comes to lie another way, and partial results to one.
#ifndef KILN_COMPILER_SHARD_RESHARD_H_
#define KILN_COMPILER_SHARD_RESHARD_H_

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/shard/collective.h"
#include "compiler/shard/propagate.h"

namespace kiln::shard {

// Writes local nodes and collectives. Not thread-safe, as its Builder.
class Resharder {
 public:
  // `place` has an int64 for each axis of the mesh; collectives' results are inputs from
  // `first_result` on. All must outlive this.
  Resharder(const Mesh& mesh, ops::Builder& builder, const ir::Node* place, int64_t first_result,
            std::vector<Collective>* collectives)
      : mesh_(mesh),
        builder_(builder),
        place_(place),
        first_result_(first_result),
        collectives_(*collectives) {}

  // What lies as `from`, lying as `to`. Cuts first where that is free, then moves splits from one
  // dimension to another, then gathers.
  const ir::Node* Reshard(const ir::Node* local, Spec from, const Spec& to);

  // The results that are partial over layout.partial, combined, lying as layout.spec.
  const ir::Node* Finish(const ir::Node* partial, ir::Op combine, const Layout& layout);

  // The number of the device among those that differ in these axes, at least one: an int64 scalar.
  const ir::Node* Number(const std::vector<int>& axes);

 private:
  int64_t Devices(const std::vector<int>& axes) const;
  const ir::Node* Cut(const ir::Node* local, int64_t dim, const std::vector<int>& axes);
  const ir::Node* AllReduce(const ir::Node* partial, ir::Op combine, const std::vector<int>& axes);
  const ir::Node* Add(Collective collective);
  bool CutWhatIsFree(const ir::Node** local, Spec& from, const Spec& to);
  bool Exchange(const ir::Node** local, Spec& from, const Spec& to);
  bool Gather(const ir::Node** local, Spec& from, const Spec& to);

  const Mesh& mesh_;
  ops::Builder& builder_;
  const ir::Node* place_;
  const int64_t first_result_;
  std::vector<Collective>& collectives_;
  absl::flat_hash_map<const ir::Node*, std::vector<size_t>> by_operand_;
};

}  // namespace kiln::shard

#endif  // KILN_COMPILER_SHARD_RESHARD_H_
