// Which bytes of device memory something touched.
#ifndef KILN_TESTS_STAND_INS_CUDA_PTX_TOUCHED_H_
#define KILN_TESTS_STAND_INS_CUDA_PTX_TOUCHED_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/stand_ins/cuda/ptx/interpret.h"

namespace kiln::stand_ins::ptx {

// Adds [begin, end) to ranges in ascending order, joined with those that it touches. Once there are
// more than `most`, they become one from the first byte to the last.
void AddRange(std::vector<Range>& ranges, uint64_t begin, uint64_t end, size_t most = ~size_t{0});

}  // namespace kiln::stand_ins::ptx

#endif  // KILN_TESTS_STAND_INS_CUDA_PTX_TOUCHED_H_
