// One fused kernel as loops over scalar expressions, before scheduling: it says *what* to compute,
// not *how*.
//
// A kernel is a list of stages that run one after another inside shared outer loops (the grid). A
// stage is one perfect loop nest with stores. Softmax over rows, for example, has the row as its
// grid and three stages: the row's maximum into a local, the sum of exponentials into a local, the
// quotient into the output.
//
//   for grid…:                        // any order, may run in parallel
//     for each stage, in order:
//       for ranges…:                  // any order
//         for ordered_ranges…:        // one after the other
//           for every store:
//             buffer[index] = value   // where valid
//
// A value may contain kReduce nodes, all of which run over the stage's reduce_ranges.
//
// A scatter is a stage with ordered ranges. Its store goes to an element whose position is loaded,
// and may combine the value with the element's old value: b2[b1[r1]*64 + r0] = b2[b1[r1]*64 + r0] +
// b0[r1*64 + r0]. Points that differ in `ranges` write different elements (verified), so that they
// may run in parallel.
//
// Index expressions are int64 nodes over kRange, kConst, kAdd, kMul, kIDiv, kMod (and kSub, kMin,
// kMax, kWhere, kCast and kLoad for gathers). Every access is proved in bounds or has a valid
// condition: see bounds.h.
#ifndef KILN_COMPILER_KERNEL_KERNEL_H_
#define KILN_COMPILER_KERNEL_KERNEL_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/node.h"

namespace kiln::kernel {

enum class Memory : uint8_t {
  kGlobal,  // an argument of the kernel; see Access
  kLocal,   // lives for one point of the grid; shared by the stages; the schedule chooses registers
            // or scratch
};
enum class Access : uint8_t {
  kRead,
  kWrite,
  kUpdate,  // has a value before the kernel, of which a scatter changes a part
};

struct Buffer {
  ir::DType dtype = ir::DType::kInvalid;
  int64_t elements = 0;
  Memory memory = Memory::kGlobal;
  Access access = Access::kRead;  // kGlobal: a kernel never reads what it writes, except the
                                  // element that a scatter combines. Locals are written, then read.
};

struct Store {
  int buffer = 0;
  const ir::Node* index = nullptr;  // int64, in elements
  const ir::Node* value = nullptr;  // of the buffer's dtype
  const ir::Node* valid = nullptr;  // bool; null: always
};

struct Stage {
  std::vector<const ir::Node*>
      ranges;  // kRange; the store is executed once per point (and point of the grid)
  std::vector<const ir::Node*>
      reduce_ranges;          // kRange; every kReduce in the stores runs over exactly these
  std::vector<Store> stores;  // at least one
  // kRange; only for a scatter, which has one store and no reduce ranges.
  std::vector<const ir::Node*> ordered_ranges = {};
};

struct Kernel {
  std::string name;  // from what it computes, e.g. "reduce_sum_512_800"; not part of its identity
  std::vector<Buffer> buffers;  // globals first, in the order of the call's arguments; then locals
  std::vector<const ir::Node*> grid;  // kRange, outermost first; may be empty
  std::vector<Stage> stages;
};

// Returns a canonical text: equal texts mean equal kernels, whatever Context and range ids they
// were built with. The name is not included. The text is the kernel cache's key, and `explain`
// prints it.
std::string Print(const Kernel& kernel);
// Reads what Print wrote and makes the nodes in `context`. Returns INVALID_ARGUMENT, "line N: …",
// if the text is not a kernel. Safe for untrusted text. Does not prove accesses: see bounds.h.
absl::StatusOr<Kernel> ParseKernel(std::string_view text, ir::Context& context);

// Floating-point operations, and a lower bound on the bytes moved through global memory (each
// accessed element once).
struct Cost {
  int64_t flops = 0;
  // Those of `flops` that are multiplications and additions of sums of products, of which hardware
  // does two at once, by dtype; and the others. An FMA is two operations.
  std::map<ir::DType, int64_t> fused_flops;
  std::map<ir::DType, int64_t> other_flops;
  int64_t bytes = 0;
  int64_t written_bytes = 0;  // those of `bytes` that are written
};
Cost EstimateCost(const Kernel& kernel);

// Returns the number of points of all loops.
int64_t CountPoints(const Kernel& kernel);

}  // namespace kiln::kernel

#endif  // KILN_COMPILER_KERNEL_KERNEL_H_
