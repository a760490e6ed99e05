// Targets of this machine by the width of their vectors.
#ifndef KILN_TESTS_FULL_SIZE_LANES_H_
#define KILN_TESTS_FULL_SIZE_LANES_H_

#include <vector>

#include "drivers/interface/target.h"

namespace kiln::full_size {

// Of 4, 8 and 16 float32 in a vector, those that this processor can execute.
std::vector<int> ExecutableLanes();

// This processor, restricted to vectors of one of these.
drivers::Target TargetWith(int lanes, int compute_units);

}  // namespace kiln::full_size

#endif  // KILN_TESTS_FULL_SIZE_LANES_H_
