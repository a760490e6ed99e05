// What random graphs have found: shrunken graphs that once compiled to something else than they
// mean, or not at all.
#include <cmath>
#include <limits>

#include "compiler/graph/text.h"
#include "gtest/gtest.h"
#include "tests/numerics/run_compiled.h"

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

// The conditions of a load were required one after the other when it was made and in another order
// when its bounds were verified, where one needed what a later one says of the index.
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

// The other factor was read beyond the border of its row.
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

// Only one factor was guarded, and the other gave NaN where it met the guard's zero.
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

}  // namespace
}  // namespace kiln::random_graphs
