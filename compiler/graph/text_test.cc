#include "compiler/graph/text.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln::graph {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kStep = R"(input 0 float32[4,8]
input 1 int32[4]
input 2 float32
%0 = input float32[4,8] index=0
%1 = const float32 value=0.5
%2 = reshape float32[1,1] %1
%3 = expand float32[4,8] %2
%4 = mul float32[4,8] %0 %3
%5 = reduce_sum float32[1,1] %4 axes=[0,1]
%6 = reshape float32 %5
output %6
output %6
update 0 %4
)";

TEST(GraphTextTest, ReadsBack) {
  absl::StatusOr<Graph> graph = Parse(kStep);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->inputs.size(), 3u);
  EXPECT_EQ(graph->outputs.size(), 2u);
  EXPECT_EQ(graph->updates.size(), 1u);
  EXPECT_EQ(Print(*graph), kStep);
}

TEST(GraphTextTest, NumbersAndOrderOfTextDoNotMatter) {
  absl::StatusOr<Graph> graph = Parse(R"(
    input 0 float32   # the only one
    %9 = const float32 value=2
    %7 = input float32 index=0

    %8 = add float32 %7 %9
    output %8)");
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(Print(*graph),
            "input 0 float32\n%0 = input float32 index=0\n%1 = const float32 value=2\n"
            "%2 = add float32 %0 %1\noutput %2\n");
}

TEST(GraphTextTest, PrecisionIsSaidUnlessItIsTheHighest) {
  const std::string high = "float32_matmul_precision high\n" + std::string(kStep);
  absl::StatusOr<Graph> graph = Parse(high);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->float32_matmul_precision, MatmulPrecision::kHigh);
  EXPECT_EQ(Print(*graph), high);
  graph = Parse("float32_matmul_precision highest\n" + std::string(kStep));
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(Print(*graph), kStep);
}

TEST(GraphTextTest, AMeshAndHowValuesLieOnIt) {
  constexpr std::string_view kSharded = R"(mesh data=2 model=4
input 0 float32[4,8] spec=[1,0,1,1]
input 1 float32[4,8]
%0 = input float32[4,8] index=0
%1 = input float32[4,8] index=1
%2 = add float32[4,8] %0 %1
%3 = shard float32[4,8] %2 spec=[0,2,1,0]
output %3 spec=[0,1,0]
output %0
update 0 %3
)";
  absl::StatusOr<Graph> graph = Parse(kSharded);
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_NE(graph->sharding, nullptr);
  EXPECT_EQ(graph->sharding->mesh, (Mesh{{{"data", 2}, {"model", 4}}}));
  EXPECT_EQ(graph->sharding->inputs, (std::vector<Spec>{{{0}, {1}}, {{}, {}}}));
  EXPECT_EQ(graph->sharding->outputs, (std::vector<Spec>{{{}, {0}}, {{}, {}}}));
  EXPECT_EQ(Print(*graph), kSharded);
}

TEST(GraphTextTest, RejectsWhatDoesNotLieOnTheMesh) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"mesh\n", "line 1: the mesh has 0 axes; it must have 1 to 4"},
      {"mesh a=1 b=1 c=1 d=1 e=1\n", "the mesh has 5 axes"},
      {"mesh a=0\n", "axis \"a\" has size 0"},
      {"mesh a=8 b=9\n", "at most 64 devices"},
      {"mesh a=9223372036854775807 b=2\n", "axis \"a\" has size 9223372036854775807"},
      {"mesh a=2 a=2\n", "two axes named \"a\""},
      {"mesh a-b=2\n", "an axis named \"a-b\""},
      {"mesh a\n", "'' is not an integer"},
      {"mesh a=2\nmesh a=2\n", "line 2: a graph can have only one mesh"},
      {"input 0 float32[4] spec=[1,0]\n", "line 1: a spec needs a mesh"},
      {"mesh a=2\ninput 0 float32[4] spec=[1]\n", "line 2: a spec must have a count"},
      {"mesh a=2\ninput 0 float32[4] spec=1\n", "line 2: expected a spec"},
      {"mesh a=2\ninput 0 float32[4] spec=[1,1]\n", "split by axis 1 of a mesh that has 1"},
      {"mesh a=2\ninput 0 float32[4]\n%0 = input float32[4] index=0\n"
       "%1 = shard float32[4] %0 spec=[1,7]\noutput %1\n",
       "split by axis 7"},
  };
  for (const auto& [text, message] : cases) {
    absl::Status status = Parse(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message)) << text;
  }
}

TEST(GraphTextTest, RejectsWhatIsIllegal) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"float32_matmul_precision low\n", "line 1: float32_matmul_precision is \"highest\" or"},
      {"float32_matmul_precision\n", "line 1: float32_matmul_precision is \"highest\" or"},
      {"input 1 float32\n", "line 1: inputs are numbered"},
      {"input 0\n", "line 1: expected an input"},
      {"input 0 float\n", "line 1: 'float' is not a dtype"},
      {"input 0 float32[-1]\n", "an input of no possible size"},
      {"\n\noutput %0\n", "line 3: no node %0"},
      {"update 0 %0\n", "line 1: no such input is declared: 0"},
      {"%0 = input float32 index=0\noutput %0\n", "no such input is declared"},
      {"%0 = input float32 index=-1\noutput %0\n", "no such input is declared"},
      {"input 0 float32[2]\n%0 = input float32 index=0\noutput %0\n", "declared as float32[2]"},
      {"input 0 float32[2]\n%0 = const float32 value=1\nupdate 0 %0\n", "it is float32[2]"},
      {"input 0 float32\n%0 = const float32 value=1\nupdate 0 %0\nupdate 0 %0\n", "two updates"},
      {"input 0 float32\n%0 = range int64 id=0 extent=2\n", "line 2: illegal node range"},
  };
  for (const auto& [text, message] : cases) {
    absl::Status status = Parse(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message)) << text;
  }
}

TEST(GraphTextTest, LongGraphs) {
  std::string text = "input 0 float32\n%0 = input float32 index=0\n";
  for (int i = 0; i < 20000; ++i) {
    text += "%" + std::to_string(i + 1) + " = neg float32 %" + std::to_string(i) + "\n";
  }
  text += "output %20000\n";
  absl::StatusOr<Graph> graph = Parse(text);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(Print(*graph), text);
}

}  // namespace
}  // namespace kiln::graph
