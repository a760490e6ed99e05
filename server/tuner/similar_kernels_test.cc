#include "server/tuner/similar_kernels.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace kiln::tuner {
namespace {

std::string Product(int rows, int columns, const std::string& dtype = "float32",
                    const std::string& value = "b0[r0*64 + r2]*b1[r2*8 + r1]") {
  return absl::StrCat("buffer b0 ", dtype, "[", rows * 64, "] read\nbuffer b1 ", dtype, "[",
                      columns * 64, "] read\nbuffer b2 ", dtype, "[", rows * columns,
                      "] write\nstage r0:", rows, " r1:", columns, " reduce r2:64\n  b2[r0*",
                      columns, " + r1] = sum(", value, ")\n");
}

double Distance(const std::string& one, const std::string& other) {
  return DistanceOf(ShapeOf(one), ShapeOf(other));
}

TEST(SimilarKernelsTest, TheSameStructureDiffersByItsSizes) {
  EXPECT_EQ(ShapeOf(Product(8, 16)).structure, ShapeOf(Product(32, 4)).structure);
  EXPECT_EQ(Distance(Product(8, 16), Product(8, 16)), 0);
  EXPECT_DOUBLE_EQ(Distance(Product(8, 16), Product(32, 16)), 2);
  EXPECT_DOUBLE_EQ(Distance(Product(32, 16), Product(8, 8)), 3);
}

TEST(SimilarKernelsTest, AnotherStructureWithTheSameLoopsIsFarther) {
  const std::string other = Product(8, 16, "float32", "b0[r2*8 + r0]*b1[r1*64 + r2]");
  const double distance = Distance(Product(8, 16), other);
  EXPECT_GT(distance, Distance(Product(8, 16), Product(8 << 16, 16 << 16)));
  EXPECT_LT(distance, kNotSimilar);
}

TEST(SimilarKernelsTest, OtherLoopsOrDtypesAreNotSimilar) {
  EXPECT_EQ(Distance(Product(8, 16), Product(8, 16, "float64")), kNotSimilar);
  const std::string copy =
      "buffer b0 float32[8] read\nbuffer b1 float32[8] write\nstage r0:8\n  b1[r0] = b0[r0]\n";
  EXPECT_EQ(Distance(Product(8, 16), copy), kNotSimilar);
  EXPECT_EQ(Distance(copy, ""), kNotSimilar);
  EXPECT_EQ(Distance("stage r0:", "stage r0:"), kNotSimilar);
}

TEST(SimilarKernelsTest, NamesKeepTheirNumbers) {
  EXPECT_EQ(ShapeOf("  b1[r0*12 + r1] = b0[3] + 0.25:float32\n").structure,
            "  b1[r0*# + r1] = b0[#] + #.#:float32\n");
}

}  // namespace
}  // namespace kiln::tuner
