// Ranges of accessed bytes of device memory.
#ifndef KILN_TESTS_STAND_INS_CUDA_PTX_TOUCHED_H_
#define KILN_TESTS_STAND_INS_CUDA_PTX_TOUCHED_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/stand_ins/cuda/ptx/interpret.h"

namespace kiln::stand_ins::ptx {

// Adds [begin, end) to ascending ranges and merges it with those that it touches. If there are then
// more than `ranges_max`, all become one range from the first byte to the last.
void AddRange(std::vector<Range>& ranges, uint64_t begin, uint64_t end,
              size_t ranges_max = ~size_t{0});

}  // namespace kiln::stand_ins::ptx

#endif  // KILN_TESTS_STAND_INS_CUDA_PTX_TOUCHED_H_
