// Arithmetic of short floats in the text form, before and after the pass.
#include "compiler/graph/widen.h"

#include <string>

#include "compiler/graph/text.h"
#include "compiler/graph/verify.h"
#include "gtest/gtest.h"

namespace kiln::graph {
namespace {

std::string Widened(std::string_view text) {
  absl::StatusOr<Graph> graph = Parse(text);
  if (!graph.ok()) return graph.status().ToString();
  const Graph wide = Widen(*graph);
  if (absl::Status legal = Verify(wide); !legal.ok()) return legal.ToString();
  return Print(wide);
}

TEST(WidenTest, EveryResultIsRounded) {
  EXPECT_EQ(Widened(R"(input 0 float16[3]
%0 = input float16[3] index=0
%1 = mul float16[3] %0 %0
%2 = sin float16[3] %1
output %2
)"),
            R"(input 0 float16[3]
%0 = input float16[3] index=0
%1 = cast float32[3] %0
%2 = mul float32[3] %1 %1
%3 = cast float16[3] %2
%4 = cast float32[3] %3
%5 = sin float32[3] %4
%6 = cast float16[3] %5
output %6
)");
}

TEST(WidenTest, SumsAddUpInFloat32) {
  EXPECT_EQ(Widened(R"(input 0 bfloat16[3,4]
%0 = input bfloat16[3,4] index=0
%1 = reduce_sum bfloat16[3,1] %0 axes=[1]
output %1
)"),
            R"(input 0 bfloat16[3,4]
%0 = input bfloat16[3,4] index=0
%1 = cast float32[3,4] %0
%2 = reduce_sum float32[3,1] %1 axes=[1]
%3 = cast bfloat16[3,1] %2
output %3
)");
}

TEST(WidenTest, MovementAndChoiceStay) {
  const std::string text = R"(input 0 float8_e4m3[3,4]
input 1 bool[4,3]
%0 = input bool[4,3] index=1
%1 = input float8_e4m3[3,4] index=0
%2 = permute float8_e4m3[4,3] %1 order=[1,0]
%3 = flip float8_e4m3[4,3] %2 axes=[0]
%4 = where float8_e4m3[4,3] %0 %2 %3
output %4
)";
  EXPECT_EQ(Widened(text), text);
}

TEST(WidenTest, ComparisonsAreOfFloat32) {
  EXPECT_EQ(Widened(R"(input 0 float8_e5m2[3]
%0 = input float8_e5m2[3] index=0
%1 = cmplt bool[3] %0 %0
output %1
)"),
            R"(input 0 float8_e5m2[3]
%0 = input float8_e5m2[3] index=0
%1 = cast float32[3] %0
%2 = cmplt bool[3] %1 %1
output %2
)");
}

}  // namespace
}  // namespace kiln::graph
