// The pairs of arguments that may be one buffer, and kernels that have none.
#include "compiler/kernel/in_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kiln::kernel {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<InPlace> PairsOf(const char* text) {
  ir::Context context;
  const absl::StatusOr<Kernel> kernel = ParseKernel(text, context);
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  return kernel.ok() ? FindInPlace(*kernel) : std::vector<InPlace>();
}

TEST(InPlace, AnElementIsReadWhereItIsWritten) {
  EXPECT_THAT(PairsOf("buffer b0 float32[8] read\n"
                      "buffer b1 float32[1] read\n"
                      "buffer b2 float32[8] write\n"
                      "stage r0:8\n"
                      "  b2[r0] = b0[r0]*b1[0]\n"),
              ElementsAre(InPlace{0, 2}));
}

// Adam: the weights are computed from the moments, so that they are stored first, in spite of their
// place. b0, b1 and b2 are weights and moments, b3 is the gradient.
TEST(InPlace, ValuesAreStoredBeforeThoseThatTheyAreMadeOf) {
  constexpr char kText[] =
      "buffer b0 float32[8] read\n"
      "buffer b1 float32[8] read\n"
      "buffer b2 float32[8] read\n"
      "buffer b3 float32[8] read\n"
      "buffer b4 float32[8] write\n"
      "buffer b5 float32[8] write\n"
      "buffer b6 float32[8] write\n"
      "stage r0:8\n"
      "  v0 = b1[r0]*0.5:float32 + b3[r0]\n"
      "  b4[r0] = v0\n"
      "  v1 = b2[r0]*0.25:float32 + b3[r0]*b3[r0]\n"
      "  b5[r0] = v1\n"
      "  b6[r0] = b0[r0] - v0*sqrt(v1)\n";
  ir::Context context;
  const absl::StatusOr<Kernel> kernel = ParseKernel(kText, context);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  EXPECT_EQ(StoreOrder(*kernel, kernel->stages[0]).front(), 2);
  const std::vector<InPlace> pairs = FindInPlace(*kernel);
  EXPECT_THAT(pairs, testing::IsSupersetOf({InPlace{1, 4}, InPlace{2, 5}, InPlace{0, 6}}));
  // The moments are still needed when the weights are stored.
  EXPECT_THAT(pairs, testing::Not(testing::Contains(InPlace{1, 6})));
  EXPECT_THAT(pairs, testing::Not(testing::Contains(InPlace{2, 6})));
  EXPECT_THAT(pairs, testing::Not(testing::Contains(InPlace{3, 6})));
}

TEST(InPlace, OtherElementsAreNotRead) {
  // The neighbour.
  EXPECT_THAT(PairsOf("buffer b0 float32[8] read\n"
                      "buffer b1 float32[8] write\n"
                      "stage r0:8\n"
                      "  b1[r0] = b0[r0*-1 + 7]\n"),
              IsEmpty());
  // The element and the first one.
  EXPECT_THAT(PairsOf("buffer b0 float32[8] read\n"
                      "buffer b1 float32[8] write\n"
                      "stage r0:8\n"
                      "  b1[r0] = b0[r0] - b0[0]\n"),
              IsEmpty());
  // All elements of the row.
  EXPECT_THAT(PairsOf("buffer b0 float32[32] read\n"
                      "buffer b1 float32[32] write\n"
                      "buffer b2 float32[1] local\n"
                      "grid r0:4\n"
                      "stage reduce r1:8\n"
                      "  b2[0] = max(b0[r0*8 + r1])\n"
                      "stage r2:8\n"
                      "  b1[r0*8 + r2] = b0[r0*8 + r2] - b2[0]\n"),
              IsEmpty());
}

TEST(InPlace, SizeAndDtypeAreEqual) {
  EXPECT_THAT(PairsOf("buffer b0 float32[8] read\n"
                      "buffer b1 float32[4] write\n"
                      "stage r0:4\n"
                      "  b1[r0] = b0[r0]\n"),
              IsEmpty());
  EXPECT_THAT(PairsOf("buffer b0 float32[8] read\n"
                      "buffer b1 int32[8] write\n"
                      "stage r0:8\n"
                      "  b1[r0] = int32(b0[r0])\n"),
              IsEmpty());
}

// Each is read where the other one is written last.
TEST(InPlace, OfTwoThatAreExchangedOneHasAPair) {
  const std::vector<InPlace> pairs = PairsOf(
      "buffer b0 float32[8] read\n"
      "buffer b1 float32[8] read\n"
      "buffer b2 float32[8] write\n"
      "buffer b3 float32[8] write\n"
      "stage r0:8\n"
      "  b2[r0] = b0[r0]*0.5:float32\n"
      "  b3[r0] = b1[r0] + b0[r0]*0.5:float32\n");
  EXPECT_THAT(pairs, testing::Contains(InPlace{1, 3}));
  EXPECT_THAT(pairs, testing::Contains(InPlace{0, 2}));
  EXPECT_THAT(pairs, testing::Not(testing::Contains(InPlace{0, 3})));
}

}  // namespace
}  // namespace kiln::kernel
