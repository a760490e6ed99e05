// Elementwise kernels in which a GPU's thread computes several neighbours at once.
#include <string>
#include <vector>

#include "compiler/kernel/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/numerics/machine_codes/machine_code.h"

namespace kiln::numerics {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct VectorCase {
  std::string name;
  std::string kernel;
  std::string access;  // in the PTX; of one element: "ld.global.b32"
  bool is_vector = true;
};
void PrintTo(const VectorCase& at, std::ostream* out) { *out << at.name; }

class PtxVectorTest : public testing::TestWithParam<VectorCase> {};

TEST_P(PtxVectorTest, EqualsTheKernel) {
  ir::Context context;
  const auto kernel = kernel::ParseKernel(GetParam().kernel, context);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  // So small that a few elements are enough for all of its threads.
  drivers::Target target = PtxTarget();
  target.limits.compute_units = 1;
  target.limits.threads_per_unit = 32;
  const schedule::Schedule schedule = ChooseForTarget(*kernel, target);
  SCOPED_TRACE(schedule::Print(schedule));
  EXPECT_THAT(schedule::Print(schedule), GetParam().is_vector
                                             ? ::testing::Matcher<std::string>(HasSubstr("vector"))
                                             : Not(HasSubstr("vector")));
  const auto image = CompileForTarget(*kernel, schedule, target);
  ASSERT_TRUE(image.ok()) << image.status();
  EXPECT_THAT(image->code, HasSubstr(GetParam().access));
  EXPECT_EQ(Disagreement(Ptx(), *kernel, *image, target, 1e-6), "");
}

std::vector<VectorCase> VectorCases() {
  return {
      {"float32",
       "buffer b0 float32[1024] read\nbuffer b1 float32[1024] read\nbuffer b2 float32[1024] write\n"
       "stage r0:1024\n  b2[r0] = exp2(b0[r0])*b1[r0] + 1:float32\n",
       "ld.global.nc.v4.b32"},
      {"float16",
       "buffer b0 float16[1024] read\nbuffer b1 float16[1024] write\n"
       "stage r0:1024\n  b1[r0] = float16(float32(b0[r0]) + 1:float32)\n",
       "st.global.v4.b32"},
      {"float64",
       "buffer b0 float64[1024] read\nbuffer b1 float64[1024] write\n"
       "stage r0:1024\n  b1[r0] = b0[r0]*b0[r0]\n",
       "ld.global.nc.v2.b64"},
      // As many as of the widest dtype.
      {"mixed",
       "buffer b0 float16[1024] read\nbuffer b1 int32[1024] read\nbuffer b2 bool[1024] write\n"
       "stage r0:1024\n  b2[r0] = cmplt(int32(b0[r0]), b1[r0])\n",
       "ld.global.nc.v4.b32"},
      // Rows, a value for each row, and a row shared by all.
      {"rows",
       "buffer b0 float32[2048] read\nbuffer b1 float32[32] read\nbuffer b2 float32[64] read\n"
       "buffer b3 float32[2048] write\n"
       "stage r0:32 r1:64\n  b3[r0*64 + r1] = b0[r0*64 + r1]*b1[r0] + b2[r1]\n",
       "ld.global.nc.v4.b32"},
      // Rows without alignment are read element by element.
      {"shifted",
       "buffer b0 float32[1056] read\nbuffer b1 float32[1024] write\n"
       "stage r0:32 r1:32\n  b1[r0*32 + r1] = b0[r0*33 + r1]\n",
       "ld.global.nc.b32"},
      {"conditional",
       "buffer b0 float32[1024] read\nbuffer b1 float32[2048] write\n"
       "stage r0:2048\n  b1[r0] = b0[r0 if cmplt(r0, 1024)]\n",
       "st.global.v4.b32"},
      {"across",
       "buffer b0 float32[1024] read\nbuffer b1 float32[1024] write\n"
       "stage r0:32 r1:32\n  b1[r0*32 + r1] = b0[r1*32 + r0]\n",
       "ld.global.nc.b32", false},
      {"ragged",
       "buffer b0 float32[1023] read\nbuffer b1 float32[1023] write\n"
       "stage r0:1023\n  b1[r0] = b0[r0] + 1:float32\n",
       "ld.global.nc.b32", false},
      {"few",
       "buffer b0 float32[128] read\nbuffer b1 float32[128] write\n"
       "stage r0:128\n  b1[r0] = b0[r0] + 1:float32\n",
       "ld.global.nc.b32", false},
  };
}

INSTANTIATE_TEST_SUITE_P(All, PtxVectorTest, testing::ValuesIn(VectorCases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace kiln::numerics
