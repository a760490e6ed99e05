// Windows and sums over unwindows in forms without strides.
#ifndef KILN_COMPILER_PARTITION_WINDOWS_H_
#define KILN_COMPILER_PARTITION_WINDOWS_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/ir/node.h"

namespace kiln::partition {

// A window that steps by its own length only cuts the axis into pieces; `node` itself where it does
// not.
const ir::Node* ReplaceWindow(ir::Context& context, const ir::Node* node);

// Sums over an unwindow's last dimension, which are the gradients of windows.
//
// Windows that do not overlap are put next to each other. Where windows of K elements step by s <
// K, the element i = s * q + r gets what the windows q - t have at t * s + r: of each phase r that
// is an unwindow by single steps with T = ceil(K / s) elements, so nothing is visited in vain but
// the padding of K to s * T. The phases are dimensions of their own at the end of one sum, for all
// axes together, and are put between each other afterwards. (The sub-kernels of a strided
// transposed convolution, as in Shi et al., "Is the deconvolution layer the same as a convolutional
// layer?", 2016.) So a strided convolution's input gradient is one contraction.
class UnwindowSums {
 public:
  using SingleUse = std::function<bool(const ir::Node*)>;

  explicit UnwindowSums(ir::Context& context) : context_(context) {}

  // `sum` in such a form, or null. `single_use` as MergeReduction's.
  const ir::Node* Replace(const ir::Node* sum, const SingleUse& single_use);

 private:
  struct Phase {
    int64_t axis = 0;
    int64_t stride = 1;
    int64_t length = 0;  // of the axis once the phases are together
  };
  // A value before its phases are put together: the core has their dimensions at the end.
  struct Phased {
    const ir::Node* core = nullptr;
    ir::Shape shape;  // of the value
    std::vector<Phase> phases;
  };

  const ir::Node* Join(const ir::Node* sum);
  const ir::Node* Decompose(const ir::Node* sum, const SingleUse& single_use);
  Phased OperandOf(const ir::Node* unwindow, const SingleUse& single_use) const;
  const ir::Node* Interleave(const Phased& phased);

  ir::Context& context_;
  absl::flat_hash_map<const ir::Node*, Phased> phased_;  // by the value
};

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_WINDOWS_H_
