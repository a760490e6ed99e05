// Defects found by random graphs: shrunken graphs that were once compiled wrongly or not at all.
#include <cmath>
#include <limits>

#include "compiler/graph/text.h"
#include "gtest/gtest.h"
#include "tests/numerics/compiled/run_compiled.h"
#include "tests/random_graphs/trial.h"

namespace kiln::random_graphs {
namespace {

using ir::DType;
using ops::HostTensor;

std::string DisagreementOf(const char* text, const std::vector<HostTensor>& inputs) {
  const auto graph = graph::Parse(text);
  if (!graph.ok()) return graph.status().ToString();
  return numerics::Disagreement(*graph, inputs, 0);
}

HostTensor Counting(DType dtype, const ir::Shape& shape) {
  HostTensor tensor = HostTensor::Zeros(dtype, shape);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (ir::IsFloat(dtype)) {
      tensor.SetFloat(i, static_cast<double>(i % 7) - 2);
    } else {
      tensor.SetInt(i, i - 1);
    }
  }
  return tensor;
}

// The conditions of a load were applied in one order when it was made and in another when its
// bounds were verified, where one condition relied on what a later one says of the index.
TEST(Found, IndexOfDataBehindPadding) {
  EXPECT_EQ(DisagreementOf(R"(input 0 float32[1,2,2]
input 1 int64[7]
%0 = input float32[1,2,2] index=0
%1 = pad float32[1,4,2] %0 padding=[0,0,2,0,0,0]
%2 = reshape float32[8,1] %1
%3 = expand float32[8,2] %2
%4 = reshape float32[16] %3
%5 = shrink float32[10] %4 bounds=[3,13]
%6 = reshape float32[1,1,2,5] %5
%7 = input int64[7] index=1
%8 = const int64 value=0
%9 = reshape int64[1] %8
%10 = expand int64[7] %9
%11 = min int64[7] %7 %10
%12 = reshape int64[1,1,1,7] %11
%13 = gather_elements float32[1,1,2,7] %6 %12 axis=3
output %13
)",
                           {Counting(DType::kFloat32, {1, 2, 2}), Counting(DType::kInt64, {7})}),
            "");
}

TEST(Found, IndexOfDataBehindWindows) {
  EXPECT_EQ(DisagreementOf(R"(input 0 float32[2,3]
input 1 float32[12]
%0 = input float32[2,3] index=0
%1 = unwindow float32[8,3] %0 axis=0 size=8 stride=3 dilation=2
%2 = reshape float32[24,1] %1
%3 = expand float32[24,2] %2
%4 = reshape float32[48] %3
%5 = shrink float32[30] %4 bounds=[10,40]
%6 = reshape float32[2,5,3] %5
%7 = input float32[12] index=1
%8 = cast int64[12] %7
%9 = reshape int64[1,4,3] %8
%10 = gather_elements float32[2,4,3] %6 %9 axis=1
%11 = reshape float32[24] %10
%12 = shrink float32[6] %11 bounds=[6,12]
output %12
)",
                           {Counting(DType::kFloat32, {2, 3}), Counting(DType::kFloat32, {12})}),
            "");
}

TEST(Found, IndexOfDataBehindAFlip) {
  EXPECT_EQ(DisagreementOf(R"(input 0 int16[5]
input 1 int64[1,1,7]
%0 = input int16[5] index=0
%1 = pad int16[7] %0 padding=[0,2]
%2 = flip int16[7] %1 axes=[0]
%3 = cast float64[7] %2
%4 = reshape float64[7,1] %3
%5 = expand float64[7,2] %4
%6 = reshape float64[14] %5
%7 = shrink float64[10] %6 bounds=[3,13]
%8 = reshape float64[1,2,5] %7
%9 = input int64[1,1,7] index=1
%10 = gather_elements float64[1,2,7] %8 %9 axis=2
output %10
)",
                           {Counting(DType::kInt16, {5}), Counting(DType::kInt64, {1, 1, 7})}),
            "");
}

// The other factor was read beyond the end of its row.
TEST(Found, SquaresOfAnotherRowBesidePadding) {
  HostTensor x = Counting(DType::kFloat32, {2, 5, 3});
  for (int64_t i = 6; i < 14; ++i) x.SetFloat(i, std::nan(""));
  EXPECT_EQ(DisagreementOf(R"(input 0 float32[2,5,3]
%0 = input float32[2,5,3] index=0
%1 = mul float32[2,5,3] %0 %0
%2 = pad float32[2,7,3] %1 padding=[0,0,1,1,0,0]
%3 = window float32[2,5,3,3] %2 axis=1 size=3 stride=1 dilation=1
%4 = reduce_sum float32[2,5,3,1] %3 axes=[3]
output %4
)",
                           {x}),
            "");
}

// Only one factor was guarded, and the other one gave NaN when multiplied by the guard's zero.
TEST(Found, PaddingOfAnInfiniteProduct) {
  HostTensor column = Counting(DType::kFloat32, {4, 1});
  column.SetFloat(1, std::numeric_limits<double>::infinity());
  column.SetFloat(3, std::nan(""));
  EXPECT_EQ(DisagreementOf(R"(input 0 float32[4,1]
input 1 float32[4,3]
%0 = input float32[4,1] index=0
%1 = expand float32[4,3] %0
%2 = input float32[4,3] index=1
%3 = mul float32[4,3] %1 %2
%4 = pad float32[6,5] %3 padding=[1,1,2,0]
output %4
)",
                           {column, Counting(DType::kFloat32, {4, 3})}),
            "");
}

// LLVM's x86 backend chose the wrong one of two constants when it found, late, that a widened
// number never equals the one that it is compared with.
TEST(Found, ChoiceOfConstantsByWhatIsNever) {
  EXPECT_EQ(DisagreementOf(R"(input 0 int16[1,5]
input 1 int16[1,1]
input 2 float64[4,5]
input 3 float64[1,1]
input 4 float64[1,1]
input 5 float64[5]
input 6 float64[3,4]
%0 = input int16[1,5] index=0
%1 = expand int16[4,5] %0
%2 = input int16[1,1] index=1
%3 = expand int16[4,1] %2
%4 = expand int16[4,5] %3
%5 = cmpeq bool[4,5] %1 %4
%6 = input float64[4,5] index=2
%7 = input float64[1,1] index=3
%8 = expand float64[4,5] %7
%9 = where float64[4,5] %5 %6 %8
%10 = reduce_sum float64[4,1] %9 axes=[1]
%11 = reshape float64[4] %10
%12 = input float64[1,1] index=4
%13 = expand float64[1,9] %12
%14 = reshape float64[9] %13
%15 = cast uint8[9] %14
%16 = cast int16[9] %15
%17 = shrink int16[4] %16 bounds=[2,6]
%18 = const int16 value=-100
%19 = reshape int16[1] %18
%20 = expand int16[4] %19
%21 = cmpeq bool[4] %17 %20
%22 = const float64 value=0
%23 = reshape float64[1] %22
%24 = expand float64[4] %23
%25 = const float64 value=1
%26 = reshape float64[1] %25
%27 = expand float64[4] %26
%28 = where float64[4] %21 %24 %27
%29 = reduce_sum float64[1] %28 axes=[0]
%30 = reshape float64 %29
%31 = reciprocal float64 %30
%32 = reshape float64[1] %31
%33 = expand float64[4] %32
%34 = mul float64[4] %11 %33
%35 = reduce_sum float64[1] %34 axes=[0]
%36 = reshape float64 %35
%37 = input float64[5] index=5
%38 = const float64 value=-1
%39 = reshape float64[1] %38
%40 = expand float64[4] %39
%41 = mul float64[4] %33 %40
%42 = reshape float64[4,1] %41
%43 = expand float64[4,5] %42
%44 = where float64[4,5] %5 %43 %8
%45 = reduce_sum float64[1,1] %44 axes=[0,1]
%46 = reshape float64[1] %45
%47 = input float64[3,4] index=6
output %36
output %37
output %46
output %47
output %47
)",
                           {Counting(DType::kInt16, {1, 5}), Counting(DType::kInt16, {1, 1}),
                            Counting(DType::kFloat64, {4, 5}), Counting(DType::kFloat64, {1, 1}),
                            Counting(DType::kFloat64, {1, 1}), Counting(DType::kFloat64, {5}),
                            Counting(DType::kFloat64, {3, 4})}),
            "");
}

// The check whether two dimensions of a staged operand are contiguous in memory used only their
// first two positions, whose quotient by 128 did not show it yet.
TEST(Found, StagedOperandOfUnevenRows) {
  EXPECT_EQ(DisagreementOf(R"(input 0 float32[1,1,1,6,6,8,3,3]
input 1 float64[3,3]
%0 = input float32[1,1,1,6,6,8,3,3] index=0
%1 = expand float32[1,1,16,6,6,8,3,3] %0
%2 = input float64[3,3] index=1
%3 = reshape float64[9] %2
%4 = cast float16[9] %3
%5 = reshape float16[9,1] %4
%6 = expand float16[9,128] %5
%7 = reshape float16[16,8,3,3] %6
%8 = cast float32[16,8,3,3] %7
%9 = reshape float32[1,1,16,1,1,8,3,3] %8
%10 = expand float32[1,1,16,6,6,8,3,3] %9
%11 = mul float32[1,1,16,6,6,8,3,3] %1 %10
%12 = reduce_sum float32[1,1,16,6,6,1,1,1] %11 axes=[5,6,7]
output %12
)",
                           {Counting(DType::kFloat32, {1, 1, 1, 6, 6, 8, 3, 3}),
                            Counting(DType::kFloat64, {3, 3})}),
            "");
}

// None of the first three inputs was one that the generator accepts, and it continued without
// inputs.
TEST(Found, SeedWithoutAnAcceptedInput) { EXPECT_EQ(TryOne(313723).failure, ""); }

// One factor's padding was used for the whole product: padding is zero, no matter what the other
// factor is.
TEST(Found, PaddedProductOfWhatIsNotFinite) {
  for (const double value : {std::numeric_limits<double>::infinity(), std::nan("")}) {
    HostTensor factor = HostTensor::Zeros(DType::kFloat32, {1, 2});
    factor.SetFloat(0, value);
    factor.SetFloat(1, 2);
    EXPECT_EQ(DisagreementOf(R"(input 0 float32[3,2]
input 1 float32[1,2]
%0 = input float32[3,2] index=0
%1 = input float32[1,2] index=1
%2 = expand float32[3,2] %1
%3 = mul float32[3,2] %0 %2
%4 = pad float32[5,2] %3 padding=[0,2,0,0]
%5 = reduce_sum float32[5,1] %4 axes=[1]
%6 = reshape float32[1,3,2] %3
%7 = pad float32[2,3,2] %6 padding=[0,1,0,0,0,0]
%8 = reduce_sum float32[1,3,2] %7 axes=[0]
output %5
output %8
)",
                             {Counting(DType::kFloat32, {3, 2}), factor}),
              "");
  }
}

}  // namespace
}  // namespace kiln::random_graphs
