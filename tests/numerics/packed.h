// Tensors as programs for all values of a variable take them.
#ifndef KILN_TESTS_NUMERICS_PACKED_H_
#define KILN_TESTS_NUMERICS_PACKED_H_

#include "compiler/graph/graph.h"
#include "compiler/ops/host_tensor.h"

namespace kiln::numerics {

// `value` at the front of a tensor of `input`'s shape, whose rest must not matter: NaN, or numbers
// of which some would do as an index and some would not.
ops::HostTensor Packed(const ops::HostTensor& value, const graph::Input& input);

}  // namespace kiln::numerics

#endif  // KILN_TESTS_NUMERICS_PACKED_H_
