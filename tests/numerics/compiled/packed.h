// Tensors in the packed form of programs for all values of a variable.
#ifndef KILN_TESTS_NUMERICS_COMPILED_PACKED_H_
#define KILN_TESTS_NUMERICS_COMPILED_PACKED_H_

#include "compiler/graph/graph.h"
#include "compiler/ops/host_tensor.h"

namespace kiln::numerics {

// Returns a tensor of `input`'s shape that begins with `value` and whose rest must not matter: NaN,
// or numbers of which some are valid indices and some are not.
ops::HostTensor Packed(const ops::HostTensor& value, const graph::Input& input);

}  // namespace kiln::numerics

#endif  // KILN_TESTS_NUMERICS_COMPILED_PACKED_H_
