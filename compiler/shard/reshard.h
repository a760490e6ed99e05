// Changes the layout of a value, and combines partial results.
#ifndef KILN_COMPILER_SHARD_RESHARD_H_
#define KILN_COMPILER_SHARD_RESHARD_H_

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/shard/collective.h"
#include "compiler/shard/propagate.h"

namespace kiln::shard {

// Writes local nodes and collectives. Not thread-safe, because its Builder is not.
class Resharder {
 public:
  // `place` has an int64 for each axis of the mesh. The collectives' results are inputs from number
  // `first_result` on. All arguments must outlive this object.
  Resharder(const Mesh& mesh, ops::Builder& builder, const ir::Node* place, int64_t first_result,
            std::vector<Collective>* collectives)
      : mesh_(mesh),
        builder_(builder),
        place_(place),
        first_result_(first_result),
        collectives_(*collectives) {}

  // Returns the value with the layout `to` instead of `from`. First cuts where that is free, then
  // moves splits from one dimension to another, then gathers.
  const ir::Node* Reshard(const ir::Node* local, Spec from, const Spec& to);

  // Combines results that are partial over layout.partial, and returns them with layout.spec.
  const ir::Node* Finish(const ir::Node* partial, ir::Op combine, const Layout& layout);

  // Returns the device's number (an int64 scalar) among the devices that differ in these axes.
  // Requires: at least one axis.
  const ir::Node* Number(const std::vector<int>& axes);

 private:
  // Checks that by_operand_ has each collective once, and the numbers of their results.
  void Validate() const;
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
