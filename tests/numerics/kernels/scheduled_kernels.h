// Kernels shared by tests of schedules, with sizes that lanes and splits do not divide evenly.
#ifndef KILN_TESTS_NUMERICS_KERNELS_SCHEDULED_KERNELS_H_
#define KILN_TESTS_NUMERICS_KERNELS_SCHEDULED_KERNELS_H_

#include <string>
#include <string_view>

#include "compiler/ir/str_cat.h"

namespace kiln::numerics {

// Loops 0 and 1 are the result's, loop 2 is the sum's.
inline std::string Matmul(std::string_view dtype) {
  return StrCat("buffer b0 ", dtype, "[600] read\nbuffer b1 ", dtype, "[1200] read\nbuffer b2 ",
                dtype, R"([800] write
stage r0:20 r1:40 reduce r2:30
  b2[r0*40 + r1] = sum(b0[r0*30 + r2]*b1[r2*40 + r1])
)");
}

// Lane 0 of the second stage's first vector would read before the local.
inline constexpr char kRaggedLocal[] = R"(buffer b0 float32[3] read
buffer b1 float32[3] write
buffer b2 float32[3] local
stage r0:3
  b2[r0] = b0[r0]
stage r1:3
  b1[r1] = b2[r1 + -1 if cmplt(0, r1)]
)";

// Destinations that are numbers in memory, and a condition that is false for some positions.
inline constexpr char kScatter[] = R"(buffer b0 float32[320] read
buffer b1 int64[20] read
buffer b2 float32[160] update
stage r0:4 r1:4 order r2:5 r3:4
  b2[b1[r2*4 + r3]%10*16 + r0*4 + r1 if cmplt(r0*4 + r1, 13)] = b2[b1[r2*4 + r3]%10*16 + r0*4 + r1 if cmplt(r0*4 + r1, 13)] + b0[r2*64 + r3*16 + r0*4 + r1]
)";

}  // namespace kiln::numerics

#endif  // KILN_TESTS_NUMERICS_KERNELS_SCHEDULED_KERNELS_H_
