// A described GPU, which need not exist here: an H100 as CUDA describes it.
#ifndef KILN_TESTS_LAUNCHES_H100_H_
#define KILN_TESTS_LAUNCHES_H100_H_

#include "drivers/interface/target.h"

namespace kiln::launches {

// Returns the target that the CUDA driver makes from an H100's answers: 132 units, sm_90, 67
// TFLOP/s of float32 and 3.35 TB/s.
const drivers::Target& H100();

}  // namespace kiln::launches

#endif  // KILN_TESTS_LAUNCHES_H100_H_
