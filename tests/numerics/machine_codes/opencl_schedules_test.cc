// Compares scheduled kernels, printed as OpenCL C, with the interpreter: lanes, unrolled and peeled
// loops, tasks of several kinds, staged factors, partial sums, prefetches, scatters.
#include <string>
#include <vector>

#include "compiler/codegen/testing/sample_kernels.h"
#include "compiler/ir/str_cat.h"
#include "compiler/kernel/text.h"
#include "gtest/gtest.h"
#include "tests/numerics/kernels/scheduled_kernels.h"
#include "tests/numerics/machine_codes/machine_code.h"

namespace kiln::numerics {
namespace {

class OpenClSchedulesTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = OpenClC().why_not_run(); !why.empty()) GTEST_SKIP() << why;
  }
};

void ExpectRight(const kernel::Kernel& kernel, const schedule::Schedule& schedule,
                 double tolerance) {
  const auto image = OpenClC().compile(kernel, schedule, OpenClC().target);
  ASSERT_TRUE(image.ok()) << image.status();
  EXPECT_EQ(Disagreement(OpenClC(), kernel, *image, OpenClC().target, tolerance), "");
}

void ExpectRight(const std::string& text, const std::vector<std::string>& schedules,
                 double tolerance = 2e-4) {
  ir::Context context;
  const auto kernel = kernel::ParseKernel(text, context);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  for (const std::string& directives : schedules) {
    SCOPED_TRACE(StrCat(text, directives));
    const auto schedule = schedule::Parse(directives);
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    ExpectRight(*kernel, *schedule, tolerance);
  }
}

TEST_F(OpenClSchedulesTest, PlainLoops) {
  ir::Context context;
  ExpectRight(codegen::MatmulKernel(context, 20, 30, 40), {}, 1e-4);
  ExpectRight(codegen::SoftmaxKernel(context, 5, 37), {}, 1e-5);
  ExpectRight(codegen::LayerNormKernel(context, 5, 37), {}, 1e-4);
  ExpectRight(codegen::ConvolutionKernel(context, {2, 3, 4, 9, 3, 1}), {}, 1e-4);
}

TEST_F(OpenClSchedulesTest, Contractions) {
  ExpectRight(
      Matmul("float32"),
      {"split 1 16\nbind 4 vector\norder 0 0 3 2 4\nprefetch 0 1 2 4\nprefetch 0 2 0 1\n",
       "split 0 7\nsplit 4 3\nbind 6 unroll\norder 0 3 5 6 1 2\n",
       "split 2 16\nsplit 4 4\nbind 6 unroll\npartial 6\norder 0 0 1 3 5 6\n",
       "split 2 11\nsplit 4 4\nbind 6 vector\norder 0 0 1 3 5 6\n",
       "split 0 8\nbind 3 task\nsplit 4 4\nbind 5 unroll\nbind 6 unroll\norder 0 3 1 2 5 6\n",
       "split 1 16\nbind 4 vector\norder 0 3 0 2 4\nstage 0 1 3 16 2 1\n",
       "order 0 0 1 2\nstage 0 0 -1 16 0 2\nstage 0 1 -1 8 1 2\n"});
  // The sums have another order, and their numbers wrap.
  for (const char* dtype : {"int32", "uint8", "int64"}) {
    ExpectRight(Matmul(dtype), {"split 2 11\nsplit 4 4\nbind 6 vector\norder 0 0 1 3 5 6\n"}, 0);
  }
}

TEST_F(OpenClSchedulesTest, StreamsAndRaggedLanes) {
  ExpectRight(R"(buffer b0 float32[100] read
buffer b1 int64[100] read
buffer b2 float32[100] write
stage r0:100
  b2[r0] = b0[b1[r0]%100] + b0[r0] + b0[r0]*2:float32
)",
              {"split 0 16\nbind 2 vector\nprefetch 0 0 0 32\nprefetch 0 1 0 32\nstream 0\n"});
  ExpectRight(kRaggedLocal, {"", "split 1 8\nbind 3 vector\norder 1 2 3\n"});
}

TEST_F(OpenClSchedulesTest, Scatters) {
  ExpectRight(kScatter, {"", "fuse 0 1\nsplit 4 4\nbind 6 vector\norder 0 2 3 5 6\n",
                         "bind 0 task\nsplit 3 2\nbind 5 unroll\norder 0 0 2 4 5 1\n"});
}

TEST_F(OpenClSchedulesTest, MorePrivateMemoryThanThereIsIsRefused) {
  ir::Context context;
  const auto kernel = kernel::ParseKernel(R"(buffer b0 float32[20000] read
buffer b1 float32[20000] write
buffer b2 float32[20000] local
stage r0:20000
  b2[r0] = b0[r0]
stage r1:20000
  b1[r1] = b2[r1*-1 + 19999]
)",
                                          context);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  EXPECT_EQ(CompileAndRun(OpenClC(), *kernel, {}, {}).code(), absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace kiln::numerics
