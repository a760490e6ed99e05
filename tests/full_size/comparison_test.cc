// Tests the comparison: it accepts correct results and detects wrong ones.
#include "tests/full_size/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "compiler/codegen/codegen.h"
#include "compiler/codegen/testing/sample_kernels.h"
#include "compiler/machine_codes.h"
#include "compiler/schedule/apply/apply.h"
#include "compiler/search/heuristics/heuristic.h"
#include "tests/full_size/lanes.h"
#include "tests/full_size/layer.h"
#include "tests/full_size/random_schedule.h"
#include "tests/full_size/sample.h"

namespace kiln::full_size {
namespace {

using testing::HasSubstr;

schedule::Schedule Parsed(const char* text) {
  auto schedule = schedule::Parse(text);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  return *schedule;
}

TEST(Comparison, ProductsOfWholeNumbersAreExact) {
  ir::Context context;
  const kernel::Kernel kernel = codegen::MatmulKernel(context, 65, 33, 100);
  Comparison comparison(kernel, context, {});
  ASSERT_TRUE(comparison.MakeReference(TargetWith(8, 2)).ok());
  EXPECT_TRUE(comparison.exact());
  EXPECT_TRUE(comparison.complete());
  EXPECT_EQ(comparison.Check(search::Choose(kernel, TargetWith(8, 2)), TargetWith(8, 2)), "");
  EXPECT_EQ(comparison.compared(), 65 * 33);
}

// out[i, j] = Σ a[i, k] * b[k, j], without the k that is `missing`, if there is one.
kernel::Kernel Product(ir::Context& context, int64_t missing) {
  codegen::KernelWriter w(context);
  const int a = w.In(65 * 100), b = w.In(100 * 33), c = w.Out(65 * 33);
  auto i = w.Range(65), j = w.Range(33), k = w.Range(100);
  w.Stage({i, j}, {k});
  auto term = w.Load(a, i * 100 + k) * w.Load(b, k * 33 + j);
  if (missing >= 0) {
    term = w.Where(k.Binary(ir::Op::kCmpEq, w.Int(missing)), w.Float(0), term);
  }
  w.Store(c, i * 33 + j, w.Sum(term, {k}));
  return w.kernel;
}

TEST(Comparison, SeesAMissingTerm) {
  ir::Context context;
  const kernel::Kernel kernel = Product(context, -1);
  const drivers::Target target = TargetWith(8, 2);
  const auto wrong = codegen::CompileKernel(**compiler::FindMachineCode(target.architecture),
                                            Product(context, 57), {}, target);
  ASSERT_TRUE(wrong.ok()) << wrong.status();
  for (const int64_t reference_points : {1'000, 1'000'000}) {
    Comparison comparison(kernel, context, {.seed = 1, .reference_points = reference_points});
    ASSERT_TRUE(comparison.MakeReference(TargetWith(8, 2)).ok());
    EXPECT_EQ(comparison.complete(), reference_points > 300'000);
    EXPECT_EQ(comparison.Check(Parsed("stage 0 1 -1 8 2 1\n"), TargetWith(8, 2)), "");
    EXPECT_THAT(comparison.CheckImage(*wrong), HasSubstr("the plain schedule gives"));
  }
}

// A sum of many terms with one term more or less is detected.
TEST(Comparison, BoundsAreTight) {
  ir::Context context;
  const kernel::Kernel kernel = codegen::LayerNormKernel(context, 20, 1000);
  const BoundedKernel bounded = WithErrorBounds(kernel, context, true);
  EXPECT_TRUE(bounded.has_long_sum);
  EXPECT_FALSE(bounded.is_exact[3]);
  Comparison comparison(kernel, context, {});
  ASSERT_TRUE(comparison.MakeReference(TargetWith(8, 2)).ok());
  EXPECT_FALSE(comparison.exact());
  for (const int lanes : ExecutableLanes()) {
    const drivers::Target target = TargetWith(lanes, 2);
    EXPECT_EQ(comparison.Check(search::Choose(kernel, target), target), "");
  }
  EXPECT_EQ(comparison.skipped(), 0);
  EXPECT_LT(comparison.largest_bound(3), 1e-4);
}

TEST(Comparison, InputsBecomePositiveWhereNegativeOnesHaveNoRoot) {
  ir::Context context;
  codegen::KernelWriter w(context);
  const int x = w.In(100), y = w.Out(100);
  auto i = w.Range(100);
  w.Stage({i});
  w.Store(y, i, w.Load(x, i).Unary(ir::Op::kSqrt));
  Comparison comparison(w.kernel, context, {});
  ASSERT_TRUE(comparison.MakeReference(TargetWith(8, 2)).ok());
  EXPECT_TRUE(comparison.positive());
  EXPECT_EQ(comparison.Check({}, TargetWith(8, 2)), "");
  EXPECT_EQ(comparison.skipped(), 0);
}

TEST(Sample, HasTheCornersAndStaysWithin) {
  ir::Context context;
  const kernel::Kernel kernel = codegen::MatmulKernel(context, 500, 300, 100);
  const auto runs = SampleTasks(kernel, 100'000, 1);
  std::set<int64_t> tasks;
  for (const auto& [begin, end] : runs) {
    ASSERT_LE(0, begin);
    ASSERT_LE(end, 500 * 300);
    for (int64_t task = begin; task < end; ++task) tasks.insert(task);
  }
  for (int64_t corner : {0, 299, 499 * 300, 500 * 300 - 1}) EXPECT_TRUE(tasks.contains(corner));
  EXPECT_GT(tasks.size(), 500);
  EXPECT_LE(tasks.size(), 1'000 + 8);
}

// A copy whose two ranges can be fused.
kernel::Kernel Copy(ir::Context& context) {
  codegen::KernelWriter w(context);
  const int x = w.In(300), y = w.Out(300);
  auto i = w.Range(20), j = w.Range(15);
  w.Stage({i, j});
  w.Store(y, i * 15 + j, w.Load(x, i * 15 + j));
  return w.kernel;
}

TEST(RandomSchedule, HasDirectivesOfEveryKindAndFits) {
  std::mt19937_64 random(1);
  std::set<std::string> kinds;
  for (int i = 0; i < 400; ++i) {
    ir::Context context;
    const kernel::Kernel kernel = i % 4 == 0 ? codegen::SoftmaxKernel(context, 33, 100)
                                  : i % 4 == 1
                                      ? codegen::ConvolutionKernel(context, {4, 6, 8, 10, 3, 1})
                                  : i % 4 == 2 ? codegen::MatmulKernel(context, 30, 40, 50)
                                               : Copy(context);
    const schedule::Schedule schedule = RandomSchedule(kernel, 8, random).schedule;
    const auto program = schedule::Apply(kernel, schedule);
    ASSERT_TRUE(program.ok()) << program.status();
    for (const schedule::Directive& directive : schedule.directives) {
      kinds.insert(std::visit([](const auto& d) { return std::string(d.kName); }, directive));
    }
  }
  EXPECT_EQ(kinds, (std::set<std::string>{"bind", "fuse", "order", "partial", "prefetch", "skip",
                                          "split", "stage", "stream"}));
}

TEST(Layer, MistakesAreNamed) {
  EXPECT_THAT(ParseLayer("conv").status().message(), HasSubstr("no shape"));
  EXPECT_THAT(ParseLayer("conv relu").status().message(), HasSubstr("relu is no shape"));
  EXPECT_THAT(ParseLayer("conv 3x4 5x6").status().message(), HasSubstr("a second shape 5x6"));
  EXPECT_THAT(ParseNetworks("conv 3x4x5 6").status().message(), HasSubstr("in no network"));
}

}  // namespace
}  // namespace kiln::full_size
