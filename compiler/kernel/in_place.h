// Which arguments of a kernel may be the same buffer: a kernel that updates a value element by
// element may write the new value over the old one.
//
// The kernel says nothing about the order of its accesses, so two others keep the promise. Apply
// makes the stores of a point in StoreOrder, each after everything that its value needs. And the
// proof refuses a schedule that reads an element after its replacement was written.
#ifndef KILN_COMPILER_KERNEL_IN_PLACE_H_
#define KILN_COMPILER_KERNEL_IN_PLACE_H_

#include <vector>

#include "compiler/kernel/kernel.h"

namespace kiln::kernel {

// Arguments of one size and dtype: each element of `read` is only read at the point that writes the
// same element of `written`, and not after that.
struct InPlace {
  int read = 0;
  int written = 0;
  bool operator==(const InPlace&) const = default;
};

// Returns the pairs of a kernel, in the order of the written arguments. Any of them may be used
// together, if no argument is in two of them.
std::vector<InPlace> FindInPlace(const Kernel& kernel);

// Returns the order of a stage's stores. Values come before values that they are computed from: new
// weights read the old moments, so they are stored before the new moments. The stores of a scatter,
// and stages with locals, keep their order.
std::vector<int> StoreOrder(const Kernel& kernel, const Stage& stage);

}  // namespace kiln::kernel

#endif  // KILN_COMPILER_KERNEL_IN_PLACE_H_
