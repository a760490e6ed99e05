#include "server/runtime/program/launch_graph.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Slot 0 is the arena; each kernel has this access to its arguments.
compiler::CompiledProgram ProgramOf(std::vector<drivers::Access> access,
                                    std::vector<std::vector<compiler::Argument>> calls) {
  compiler::CompiledProgram program;
  program.slots = {{compiler::Slot::Kind::kArena, 0, 1000}, {compiler::Slot::Kind::kInput, 0, 100}};
  program.kernels.resize(1);
  program.kernels[0].image.access = std::move(access);
  for (auto& arguments : calls) program.calls.push_back({0, std::move(arguments)});
  return program;
}

const std::vector<drivers::Access> kReadWriteOne = {drivers::Access::kRead,
                                                    drivers::Access::kWrite};

TEST(LaunchEdges, LeadFromTheLastWriterToTheReader) {
  EXPECT_THAT(LaunchEdges(ProgramOf(kReadWriteOne, {{{1, 0, 100}, {0, 0, 64}},
                                                    {{0, 0, 64}, {0, 64, 64}},
                                                    {{0, 0, 128}, {0, 0, 64}},
                                                    {{0, 0, 32}, {0, 500, 8}}})),
              ElementsAre(LaunchEdge{0, 1, 64}, LaunchEdge{0, 2, 64}, LaunchEdge{1, 2, 64},
                          LaunchEdge{2, 3, 32}));
}

TEST(LaunchEdges, AWriteInTheMiddleLeavesBothEnds) {
  EXPECT_THAT(LaunchEdges(ProgramOf(kReadWriteOne, {{{1, 0, 8}, {0, 0, 100}},
                                                    {{1, 0, 8}, {0, 40, 20}},
                                                    {{0, 0, 100}, {0, 900, 8}}})),
              ElementsAre(LaunchEdge{0, 2, 80}, LaunchEdge{1, 2, 20}));
}

TEST(LaunchEdges, BytesThatWereNotWrittenHaveNone) {
  EXPECT_THAT(LaunchEdges(ProgramOf(kReadWriteOne,
                                    {{{1, 0, 100}, {0, 0, 64}}, {{0, 64, 64}, {0, 200, 8}}})),
              IsEmpty());
}

TEST(LaunchEdges, AKernelOfUnknownAccessReadsAndWrites) {
  EXPECT_THAT(LaunchEdges(ProgramOf({}, {{{0, 0, 64}}, {{0, 0, 64}}, {{0, 0, 64}}})),
              ElementsAre(LaunchEdge{0, 1, 64}, LaunchEdge{1, 2, 64}));
}

TEST(LaunchEdges, AnotherDevicesBytesAreThoseOfTheSameLaunch) {
  compiler::CompiledProgram program =
      ProgramOf(kReadWriteOne, {{{1, 0, 8}, {0, 0, 64}}, {{0, 0, 64, /*member=*/1}, {0, 64, 8}}});
  EXPECT_THAT(LaunchEdges(program), ElementsAre(LaunchEdge{0, 1, 64}));
}

TEST(LaunchEdges, HaveBounds) {
  const compiler::CompiledProgram program =
      ProgramOf({}, {{{0, 0, 64}}, {{0, 0, 64}}, {{0, 0, 64}}, {{0, 0, 64}}});
  const LaunchEdge first{0, 1, 64}, second{1, 2, 64};
  EXPECT_THAT(LaunchEdges(program, /*launches_max=*/2), ElementsAre(first));
  EXPECT_THAT(LaunchEdges(program, /*launches_max=*/4, /*edges_max=*/2),
              ElementsAre(first, second));
}

}  // namespace
}  // namespace kiln::runtime
