// Rewrites windows and sums over unwindows to forms without strides.
#ifndef KILN_COMPILER_PARTITION_NORMALIZE_WINDOWS_H_
#define KILN_COMPILER_PARTITION_NORMALIZE_WINDOWS_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/ir/node.h"

namespace kiln::partition {

// A window whose stride is its length only cuts the axis into pieces. Returns `node` itself if it
// is not such a window.
const ir::Node* ReplaceWindow(ir::Context& context, const ir::Node* node);

// Rewrites sums over an unwindow's last dimension, which are the gradients of windows.
//
// Windows that do not overlap are concatenated. If windows of K elements have the stride s < K,
// element i = s * q + r gets the contributions of windows q - t at t * s + r. For each phase r that
// is an unwindow with stride 1 and T = ceil(K / s) elements, so no point is visited in vain except
// the padding of K to s * T. The phases are separate dimensions at the end of one sum, for all axes
// together, and are interleaved afterwards. (The sub-kernels of a strided transposed convolution,
// as in Shi et al., "Is the deconvolution layer the same as a convolutional layer?", 2016.) So a
// strided convolution's input gradient is one contraction.
class UnwindowSums {
 public:
  using SingleUse = std::function<bool(const ir::Node*)>;

  explicit UnwindowSums(ir::Context& context) : context_(context) {}

  // Returns `sum` in such a form, or null. `single_use` is as in MergeReduction.
  const ir::Node* Replace(const ir::Node* sum, const SingleUse& single_use);

 private:
  struct Phase {
    int64_t axis = 0;
    int64_t stride = 1;
    int64_t length = 0;  // of the axis after the phases are interleaved
  };
  // A value before its phases are interleaved: the core has their dimensions at the end.
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

#endif  // KILN_COMPILER_PARTITION_NORMALIZE_WINDOWS_H_
