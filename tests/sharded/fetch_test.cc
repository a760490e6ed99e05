// Results that are fetched part by part: returned, returned twice, read by kernels in the same and
// in later segments, and sent on to other devices.
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/graph/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/sharded/run_sharded.h"

namespace kiln::sharded {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

graph::Graph Parsed(const std::string& text) {
  auto graph = graph::Parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status() << "\n" << text;
  return *std::move(graph);
}

std::vector<ops::HostTensor> Values(const graph::Graph& graph) {
  std::mt19937_64 random(7);
  std::vector<ops::HostTensor> values;
  for (const graph::Input& input : graph.inputs) {
    ops::HostTensor value = ops::HostTensor::Zeros(input.dtype, input.shape);
    auto* numbers = reinterpret_cast<float*>(value.bytes.data());
    for (size_t i = 0; i < value.bytes.size() / sizeof(float); ++i) {
      numbers[i] = std::uniform_real_distribution<float>(-1, 1)(random);
    }
    values.push_back(std::move(value));
  }
  return values;
}

void ExpectRight(const graph::Graph& graph) {
  const std::vector<ops::HostTensor> values = Values(graph);
  for (const uint64_t seed : {1, 2, 3}) {
    EXPECT_EQ(SimulatedDisagreement(graph, values, {1e-5}, seed), "");
    EXPECT_EQ(CompiledDisagreement(graph, values, {1e-5}, seed), "");
  }
}

// Four rows on four devices, and their sum.
std::string SumOfRows(int64_t elements) {
  return absl::StrCat("mesh x=4\ninput 0 float32[4,", elements,
                      "] spec=[1,0,0]\n%0 = input float32[4,", elements,
                      "] index=0\n%1 = reduce_sum float32[1,", elements, "] %0 axes=[0]\n");
}

TEST(Fetch, ALargeSumIsFetchedToWhereItIsReturned) {
  const graph::Graph graph = Parsed(SumOfRows(16384) + "output %1\n");
  EXPECT_THAT(ProgramText(graph), HasSubstr("of 3 in x to output 0 from byte 49152"));
  ExpectRight(graph);
}

TEST(Fetch, PartsThatAreSmallOrOfNoWholeLinesAreNot) {
  for (const int64_t elements : {1024, 16384 + 4}) {
    const graph::Graph graph = Parsed(SumOfRows(elements) + "output %1\n");
    EXPECT_THAT(ProgramText(graph), Not(HasSubstr("fetch"))) << elements;
    ExpectRight(graph);
  }
}

// The second sum depends on the first one, which is returned in two shapes.
TEST(Fetch, ItIsReadWhereItWasFetchedTo) {
  const graph::Graph graph = Parsed(SumOfRows(16384) +
                                    "%2 = reshape float32[128,128] %1\n"
                                    "%3 = expand float32[4,16384] %1\n"
                                    "%4 = mul float32[4,16384] %0 %3\n"
                                    "%5 = reduce_sum float32[1,16384] %4 axes=[0]\n"
                                    "%6 = add float32[1,16384] %5 %1\n"
                                    "output %1\noutput %2\noutput %6\n"
                                    "output %4 spec=[1,0,0]\n");
  EXPECT_THAT(ProgramText(graph), HasSubstr("to output 0 from byte 0"));
  EXPECT_THAT(ProgramText(graph), HasSubstr("to own at"));
  ExpectRight(graph);
}

// Split by columns at the end, so the whole is sent on.
TEST(Fetch, AGatheredInputIsHandedOn) {
  const graph::Graph graph = Parsed(
      "mesh x=4\ninput 0 float32[256,128] spec=[1,0,0]\n%0 = input float32[256,128] index=0\n"
      "%1 = add float32[256,128] %0 %0\noutput %0\noutput %1\n"
      "output %1 spec=[0,1,0]\n");
  EXPECT_THAT(ProgramText(graph), HasSubstr("fetch"));
  ExpectRight(graph);
}

}  // namespace
}  // namespace kiln::sharded
