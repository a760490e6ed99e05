// A tensor graph split into groups of values; each group becomes one kernel.
//
// Movement ops are free: they become index arithmetic when a group is lowered (kernel/lower.h).
// Elementwise work fuses into the reductions before and after it. A value is *stored* only if that
// is cheaper than recomputing it; all other nodes are inlined into their readers. The passes that
// decide this are listed in pipeline.cc.
#ifndef KILN_COMPILER_PARTITION_PARTITION_H_
#define KILN_COMPILER_PARTITION_PARTITION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "compiler/graph/graph.h"
#include "compiler/ir/node.h"
#include "compiler/partition/digits.h"

namespace kiln::partition {

// A tensor in global memory, dense and row-major.
struct Tensor {
  enum class Kind {
    kInput,         // the graph's input `index`
    kOutput,        // written into the graph's output `index`
    kUpdate,        // written into the new value of the graph's update `index`
    kIntermediate,  // in the arena between kernels; `index` is not used
  };
  Kind kind = Kind::kIntermediate;
  int index = 0;
  ir::DType dtype = ir::DType::kInvalid;
  ir::Shape shape;
  const ir::Node* node = nullptr;  // the value; null for an input that nothing reads
};

// A value that a stage computes, at the loops' point.
struct Value {
  const ir::Node* node = nullptr;
  std::vector<Digits> axes;  // one for each dimension of node
  std::vector<Digits>
      reduce_axes;  // reductions: one per reduced axis, in the order of its IntsAttr; scatters: the
                    // position along the axis, whose own digits in `axes` are empty
  int tensor = -1;  // stored to this tensor, or -1
  int local = -1;   // stored to this local of the group, or -1
};

// Values that one loop nest computes. A value may use an earlier one of its stage at the same
// point.
struct Stage {
  std::vector<int> loops;         // besides the grid
  std::vector<int> reduce_loops;  // loops of the stage's reductions, or of its scatter in order
  std::vector<Value> values;      // operands before users
};

// A value that lives for one point of the grid.
struct Local {
  int64_t elements = 0;
  ir::DType dtype = ir::DType::kInvalid;
};

struct Group {
  std::vector<int> reads;      // tensors, each once
  std::vector<int> writes;     // tensors, each once
  std::vector<int> updates;    // existing tensors that are partly overwritten
  std::vector<int64_t> loops;  // extents
  std::vector<int> grid;       // loops that all stages share, outermost first; may be empty
  std::vector<Local> locals;
  std::vector<Stage> stages;
};

// An output or update that no kernel writes, since another tensor has the same bytes.
struct Copy {
  int tensor = 0;
  Tensor::Kind destination = Tensor::Kind::kOutput;  // kOutput or kUpdate
  int index = 0;
};

struct Partition {
  std::shared_ptr<ir::Context> context;  // owns the nodes
  std::vector<Tensor> tensors;           // the graph's inputs first, by index
  std::vector<Group> groups;             // in execution order
  std::vector<Copy> copies;              // after the groups
};

// Checks that every group's reads exist before it, every tensor is written once, nothing that was
// read is overwritten, and every output and update is produced. An INTERNAL error names the group
// and the tensor.
absl::Status Verify(const Partition& partition, const graph::Graph& graph);

// For people and golden files; deterministic.
std::string Print(const Partition& partition);

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_PARTITION_H_
