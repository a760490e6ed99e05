// Defects found by comparisons at full size: kernels with schedules for which they once were wrong
// or accessed memory out of bounds.
#include <gtest/gtest.h>

#include "tests/full_size/comparison.h"
#include "tests/full_size/lanes.h"

namespace kiln::full_size {
namespace {

// Returns an empty text if the schedule gives the plain one's results with every width.
std::string DifferenceOf(const char* kernel_text, const char* schedule_text) {
  ir::Context context;
  const auto kernel = kernel::ParseKernel(kernel_text, context);
  const auto schedule = schedule::Parse(schedule_text);
  if (!kernel.ok() || !schedule.ok()) return "does not parse";
  Comparison comparison(*kernel, context, {});
  const absl::Status status = comparison.MakeReference(TargetWith(4, 1));
  if (!status.ok()) return status.ToString();
  for (const int lanes : ExecutableLanes()) {
    std::string difference = comparison.Check(*schedule, TargetWith(lanes, 1));
    if (!difference.empty()) return difference;
  }
  return "";
}

// Lane 0 was masked, but every second element from it on was loaded as one vector, which began
// before the buffer.
TEST(Found, LanesInFrontOfTheBuffer) {
  EXPECT_EQ(DifferenceOf(R"(buffer b0 float32[32768] read
buffer b1 float32[9] read
buffer b2 float32[8192] write
stage r0:8 r1:32 r2:32 reduce r3:3 r4:3
  b2[r0*1024 + r1*32 + r2] = sum(b0[r0*4096 + r1*128 + r3*64 + r2*2 + r4 + -65 if and(cmplt(0, r1*2 + r3), cmplt(0, r2*2 + r4))]*b1[r3*3 + r4])
)",
                         "split 2 16\nbind 6 vector\nbind 3 unroll\nbind 4 unroll\n"
                         "order 0 0 1 5 6 3 4\n"),
            "");
}

// The copy of r3 - r2 began where a full last part of r2 would, but had the length of the actual
// part.
TEST(Found, StagedDifferenceWithARaggedPart) {
  EXPECT_EQ(DifferenceOf(R"(buffer b0 float32[960] read
buffer b1 float32[56] read
buffer b2 float32[992] write
stage r0:8 r1:124 reduce r2:8 r3:7
  b2[r0*124 + r1] = sum(b0[r2*120 + r1 + r3*-1 + 1 if and(cmplt(-2, r1 + r3*-1), cmplt(r1 + r3*-1, 119))]*b1[r2*7 + r3])
)",
                         "split 1 5\nstage 0 0 -1 4 2 1*3+-1*1\norder 0 0 4 5 2 3\n"),
            "");
}

// Superfluous lanes read a local, and a copy, far past its end.
TEST(Found, LanesBehindALocal) {
  EXPECT_EQ(DifferenceOf(R"(buffer b0 float32[2056] read
buffer b1 float32[8] write
buffer b2 float32[2056] local
stage r0:8 r1:257
  b2[r0*257 + r1] = b0[r0*257 + r1]*b0[r0*257 + r1]
stage r2:8 reduce r3:257
  b1[r2] = sum(b2[r2*257 + r3])
)",
                         "split 2 16\nbind 5 vector\norder 1 4 3 5\n"),
            "");
}

}  // namespace
}  // namespace kiln::full_size
