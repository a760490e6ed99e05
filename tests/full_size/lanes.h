// Targets of this machine with different vector widths.
#ifndef KILN_TESTS_FULL_SIZE_LANES_H_
#define KILN_TESTS_FULL_SIZE_LANES_H_

#include <vector>

#include "drivers/interface/target.h"

namespace kiln::full_size {

// Returns those of 4, 8 and 16 float32 lanes that this processor can execute.
std::vector<int> ExecutableLanes();

// Returns this processor's target, restricted to one of these vector widths.
drivers::Target TargetWith(int lanes, int compute_units);

}  // namespace kiln::full_size

#endif  // KILN_TESTS_FULL_SIZE_LANES_H_
