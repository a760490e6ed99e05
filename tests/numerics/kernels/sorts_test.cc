// Sorting on machines with blocks of threads: run on the host, where races are reported, and as PTX
// by its interpreter, it gives the reference's bits; for a described H100 it takes few kernels,
// since a block processes a tile in many rounds.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/kernel/lower.h"
#include "compiler/kernel/testing/interpret.h"
#include "compiler/ops/testing/evaluate.h"
#include "compiler/partition/limits.h"
#include "compiler/schedule/apply/apply.h"
#include "compiler/schedule/testing/interpret.h"
#include "compiler/schedule/threads/synchronize.h"
#include "compiler/search/heuristics/thread_chooser.h"
#include "gtest/gtest.h"
#include "tests/launches/h100.h"
#include "tests/numerics/cases/cases.h"
#include "tests/numerics/cases/primitive_values.h"
#include "tests/numerics/kernels/proved_loops.h"
#include "tests/numerics/machine_codes/machine_code.h"
#include "tests/numerics/machine_codes/some_gpu.h"

namespace kiln::numerics {
namespace {

using ir::DType;
using kernel::Kernel;
using ops::HostTensor;

struct SortCase {
  std::string name;
  std::string op;
  ir::Shape shape;
  ops::Attributes attributes;
};

void PrintTo(const SortCase& sort, std::ostream* out) { *out << sort.name; }

const ops::Attributes kFirstAxis = {{"axis", int64_t{0}}};

std::vector<SortCase> SortCases() {
  return {
      {"short", "sort", {100}, {}},
      {"one_tile", "sort", {256}, {}},
      {"two_tiles", "argsort", {1024}, {}},
      {"no_power_of_two", "sort", {600}, {{"descending", true}}},
      {"rows", "argsort", {9, 64}, {}},
      {"odd_rows", "sort", {7, 3, 20}, {}},
      {"rows_in_two_tiles", "sort", {3, 1024}, {}},
      {"columns", "sort", {64, 5}, kFirstAxis},
      {"top", "topk", {2000}, {{"k", int64_t{7}}}},
      {"top_of_rows", "topk_indices", {4, 300}, {{"k", int64_t{20}}, {"largest", false}}},
  };
}

// Has so little memory for a block and a thread that tiles are small.
const drivers::Target& SmallGpu() {
  static const drivers::Target* const target = [] {
    auto* small = new drivers::Target(SomeGpu());
    small->limits.shared_bytes_per_block = 8 << 10;
    small->limits.local_bytes_max = 512;
    return small;
  }();
  return *target;
}

graph::Graph GraphOf(const SortCase& sort, DType dtype) {
  Case test_case;
  test_case.op = sort.op;
  test_case.operands = {{sort.shape, -2, 2, dtype}};
  test_case.attributes = sort.attributes;
  return MakeGraph(test_case, dtype).value();
}

// Few distinct values, so that many are equal, including values with special sorting rules.
HostTensor ValuesOf(const SortCase& sort, DType dtype) {
  const bool is_signed = ir::IsFloat(dtype) || ir::IsSigned(dtype);
  const double high = dtype == DType::kBool ? 2 : 40;
  HostTensor values = OperandValue({sort.shape, is_signed ? -high : 0, high, dtype}, dtype, 0);
  for (int64_t i = 0; ir::IsFloat(dtype) && i < values.size(); ++i) {
    if (i % 3 == 0) values.SetFloat(i, std::floor(values.Float(i)));
    if (i % 17 == 0) values.SetFloat(i, std::numeric_limits<double>::quiet_NaN());
    if (i % 23 == 0) values.SetFloat(i, i % 2 == 0 ? 0.0 : -0.0);
    if (i % 29 == 0) values.SetFloat(i, std::numeric_limits<double>::infinity());
  }
  return values;
}

// The maximum private memory of a thread.
constexpr int64_t kThreadBytesMax = 1 << 10;

int64_t LocalBytes(const Kernel& kernel) {
  int64_t bytes = 0;
  for (const kernel::Buffer& buffer : kernel.buffers) {
    if (buffer.memory != kernel::Memory::kLocal) continue;
    bytes += buffer.elements * ir::SizeOf(buffer.dtype);
  }
  return bytes;
}

absl::Status RunSort(const Kernel& kernel, absl::Span<HostTensor* const> globals) {
  const auto loops = ProvedLoops(kernel, search::ChooseThreads(kernel, SmallGpu()));
  if (!loops.ok()) return loops.status();
  if (LocalBytes(kernel) > kThreadBytesMax && loops->threads == 1) {
    return absl::InternalError("a tile was given to one thread");
  }
  EXPECT_LE(loops->shared_bytes, partition::SharedBytes(SmallGpu().limits));
  return schedule::Interpret(*loops, globals);
}

class SortsTest : public testing::TestWithParam<SortCase> {
 protected:
  void ExpectRight(DType dtype, const HostTensor& result) {
    const auto expected = ops::Evaluate(GraphOf(GetParam(), dtype).outputs,
                                        std::vector<HostTensor>{ValuesOf(GetParam(), dtype)});
    ASSERT_TRUE(expected.ok()) << expected.status();
    EXPECT_EQ(result.bytes, (*expected)[0].bytes) << ir::Name(dtype);
  }
  void RunOnHost(DType dtype) {
    const graph::Graph graph = GraphOf(GetParam(), dtype);
    const auto state = Passes(graph, SmallGpu());
    ASSERT_TRUE(state.ok()) << state.status();
    const auto results =
        kernel::RunPartition(state->partition, {ValuesOf(GetParam(), dtype)}, RunSort);
    ASSERT_TRUE(results.ok()) << results.status();
    ExpectRight(dtype, results->outputs[0]);
  }
};

TEST_P(SortsTest, OnHost) { RunOnHost(DType::kFloat32); }
TEST_P(SortsTest, OnPtx) {
  const DType dtype = DType::kFloat32;
  const auto state = Passes(GraphOf(GetParam(), dtype), SmallGpu());
  ASSERT_TRUE(state.ok()) << state.status();
  const auto run = [](const Kernel& kernel, absl::Span<HostTensor* const> globals) {
    return CompileAndRun(Ptx(), kernel, search::ChooseThreads(kernel, SmallGpu()), globals);
  };
  const auto results = kernel::RunPartition(state->partition, {ValuesOf(GetParam(), dtype)}, run);
  ASSERT_TRUE(results.ok()) << results.status();
  ExpectRight(dtype, results->outputs[0]);
}

INSTANTIATE_TEST_SUITE_P(All, SortsTest, testing::ValuesIn(SortCases()),
                         [](const auto& info) { return info.param.name; });

// Keys with positions, of which fewer fit into a tile.
class LongKeysTest : public SortsTest {};

TEST_P(LongKeysTest, OnHost) { RunOnHost(DType::kInt64); }

std::vector<SortCase> SmallCases() {
  std::vector<SortCase> cases = SortCases();
  std::erase_if(cases, [](const SortCase& sort) { return ir::NumElements(sort.shape) > 512; });
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, LongKeysTest, testing::ValuesIn(SmallCases()),
                         [](const auto& info) { return info.param.name; });

class SortDTypesTest : public testing::TestWithParam<DType> {};

TEST_P(SortDTypesTest, OnPtx) {
  for (const bool descending : {false, true}) {
    const SortCase sort = {"rows", "argsort", {3, 70}, {{"descending", descending}}};
    const std::vector<HostTensor> inputs = {ValuesOf(sort, GetParam())};
    const graph::Graph graph = GraphOf(sort, GetParam());
    const auto results = On(Ptx())(graph, inputs);
    ASSERT_TRUE(results.ok()) << results.status();
    const auto expected = ops::Evaluate(graph.outputs, inputs);
    ASSERT_TRUE(expected.ok()) << expected.status();
    EXPECT_EQ(results->outputs[0].bytes, (*expected)[0].bytes);
  }
}

INSTANTIATE_TEST_SUITE_P(All, SortDTypesTest, testing::ValuesIn(AllDTypes()),
                         [](const auto& info) { return std::string(ir::Name(info.param)); });

// Removes one barrier after another. Each thread has one place of the tile, so in every round it
// reads what another one wrote.
absl::Status ExpectRacesWithoutBarriers(const Kernel& kernel,
                                        absl::Span<HostTensor* const> globals) {
  auto program = schedule::Apply(kernel, search::ChooseThreads(kernel, SmallGpu()));
  if (!program.ok()) return program.status();
  const schedule::LoopProgram loops = schedule::Synchronize(*std::move(program));
  const std::vector<schedule::Statement>& body = loops.sections[0].body;
  size_t barriers = 0;
  for (size_t i = 0; i < body.size(); ++i) {
    if (!std::holds_alternative<schedule::Barrier>(body[i].node)) continue;
    ++barriers;
    schedule::LoopProgram without = loops;
    without.sections[0].body.erase(without.sections[0].body.begin() +
                                   static_cast<std::ptrdiff_t>(i));
    std::vector<HostTensor> copies;
    for (const HostTensor* global : globals) copies.push_back(*global);
    std::vector<HostTensor*> pointers;
    for (HostTensor& copy : copies) pointers.push_back(&copy);
    EXPECT_TRUE(absl::IsAborted(schedule::Interpret(without, pointers))) << "barrier " << barriers;
  }
  EXPECT_EQ(barriers, kernel.stages.size() - 1);
  return schedule::Interpret(loops, globals);
}

TEST(SortBarriersTest, EachIsNeeded) {
  const SortCase sort = {"one_tile", "argsort", {256}, {}};
  const std::vector<HostTensor> inputs = {ValuesOf(sort, DType::kInt32)};
  const auto state = Passes(GraphOf(sort, DType::kInt32), SmallGpu());
  ASSERT_TRUE(state.ok()) << state.status();
  ASSERT_EQ(state->partition.groups.size(), 1);
  EXPECT_GE(state->partition.groups[0].stages.size(), 36);  // rounds
  const auto results = kernel::RunPartition(state->partition, inputs, ExpectRacesWithoutBarriers);
  EXPECT_TRUE(results.ok()) << results.status();
}

struct SortSize {
  std::string name, op;
  ir::Shape shape;
  DType dtype;
  size_t kernels;  // at most
};

class SortKernelsTest : public testing::TestWithParam<SortSize> {};

TEST_P(SortKernelsTest, AreFew) {
  const auto& [name, op, shape, dtype, kernels] = GetParam();
  SortCase sort = {name, op, shape, {}};
  if (op == "topk") sort.attributes = {{"k", int64_t{10}}};
  const auto state = Passes(GraphOf(sort, dtype), launches::H100());
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_LE(state->partition.groups.size(), kernels) << partition::Print(state->partition);
  RecordProperty("kernels", static_cast<int>(state->partition.groups.size()));
  for (size_t i = 0; i < state->partition.groups.size(); ++i) {
    ir::Context context;
    const auto lowered = kernel::Lower(state->partition, static_cast<int>(i), context);
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    const Kernel& kernel = lowered->kernel;
    if (LocalBytes(kernel) <= 2 * launches::H100().limits.local_bytes_max) continue;
    const auto program = schedule::Apply(kernel, search::ChooseThreads(kernel, launches::H100()));
    ASSERT_TRUE(program.ok()) << program.status();
    EXPECT_GT(program->threads, 1) << kernel::Print(kernel);
    EXPECT_LE(program->shared_bytes, partition::kSharedBytesMax);
  }
}

INSTANTIATE_TEST_SUITE_P(
    H100, SortKernelsTest,
    testing::Values(SortSize{"small", "sort", {4096}, DType::kFloat32, 3},
                    SortSize{"small_long_keys", "sort", {4096}, DType::kFloat64, 6},
                    SortSize{"million", "sort", {1'000'000}, DType::kFloat32, 50},
                    SortSize{"power_of_two", "argsort", {1 << 20}, DType::kFloat32, 50},
                    SortSize{"million_long_keys", "sort", {1'000'000}, DType::kFloat64, 70},
                    SortSize{"rows", "sort", {1000, 256}, DType::kFloat32, 1},
                    SortSize{"top", "topk", {1'000'000}, DType::kFloat32, 5},
                    SortSize{"top_of_vocabulary", "topk", {8, 50257}, DType::kFloat32, 3}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace kiln::numerics
