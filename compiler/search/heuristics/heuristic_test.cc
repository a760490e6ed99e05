// Every kernel gets a schedule that fits it, for all sizes and targets.
#include "compiler/search/heuristics/heuristic.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <vector>

#include "compiler/codegen/testing/sample_kernels.h"
#include "compiler/ir/str_cat.h"
#include "compiler/schedule/apply/apply.h"
#include "compiler/search/contraction/register_tile.h"

namespace kiln::search {
namespace {

using codegen::KernelWriter;

std::vector<drivers::Target> Targets() {
  std::vector<drivers::Target> targets;
  for (int units : {1, 2, 16, 96}) {
    for (int vector_bytes : {16, 32, 64}) {
      for (int64_t cache : {64 << 10, 1 << 20}) {
        drivers::Target target;
        target.architecture = "x86-64";
        target.limits.vector_bytes = vector_bytes;
        target.limits.vector_registers = vector_bytes == 64 ? 32 : 16;
        target.limits.compute_units = units;
        target.limits.private_cache_bytes = cache;
        targets.push_back(target);
      }
    }
  }
  return targets;
}

using Maker = std::function<kernel::Kernel(ir::Context&, std::mt19937&)>;

// Returns mostly small sizes, sometimes large ones; often one or a power of two.
int64_t Size(std::mt19937& random) {
  switch (random() % 5) {
    case 0:
      return 1;
    case 1:
      return int64_t{1} << (random() % 11);
    case 2:
      return 1 + random() % 3000;
    default:
      return 1 + random() % 60;
  }
}

codegen::ConvolutionShape Convolution(std::mt19937& random) {
  const auto window = static_cast<int64_t>(1 + random() % 5);
  return {Size(random), Size(random),
          Size(random), window + Size(random) % 40,
          window,       static_cast<int64_t>(random() % 2)};
}

kernel::Kernel Reduction(ir::Context& context, std::mt19937& random) {
  KernelWriter w(context);
  const int64_t a = Size(random), b = Size(random), c = Size(random);
  const int x = w.In(a * b * c), y = w.Out(a * b * c);
  auto i = w.Range(a), j = w.Range(b), k = w.Range(c);
  auto value = w.Load(x, (i * b + j) * c + k);
  switch (random() % 4) {
    case 0:
      w.Stage({i, j}, {k});
      w.Store(y, i * b + j, w.Sum(value, {k}));
      break;
    case 1:
      w.Stage({j, k}, {i});
      w.Store(y, j * c + k, w.Sum(value, {i}));
      break;
    case 2:
      w.Stage({j}, {i, k});
      w.Store(y, j, w.Sum(value, {i, k}));
      break;
    default:
      w.Stage({}, {i, j, k});
      w.Store(y, w.Int(0), w.Sum(value, {i, j, k}));
  }
  return w.kernel;
}

// Permutations, flips, steps, divisions.
kernel::Kernel View(ir::Context& context, std::mt19937& random) {
  KernelWriter w(context);
  const int64_t a = Size(random), b = Size(random), c = Size(random);
  const int x = w.In(2 * a * b * c), y = w.Out(a * b * c);
  auto i = w.Range(a), j = w.Range(b), k = w.Range(c);
  w.Stage({i, j, k});
  auto target = (i * b + j) * c + k;
  switch (random() % 4) {
    case 0:
      w.Store(y, target, w.Load(x, (k * b + j) * a + i));
      break;
    case 1:
      w.Store(y, target, w.Load(x, (j * a + i) * c + (w.Int(c - 1) - k)));
      break;
    case 2:
      w.Store(y, target, w.Load(x, target * 2));
      break;
    default:
      w.Store(y, target, w.Load(x, target.Binary(ir::Op::kIDiv, w.Int(3))));
  }
  return w.kernel;
}

struct Family {
  const char* name;
  Maker make;
};

const std::vector<Family>& Families() {
  static const auto* families = new std::vector<Family>{
      {"matmul",
       [](ir::Context& c, std::mt19937& r) {
         return codegen::MatmulKernel(c, Size(r), Size(r), Size(r), r() % 2, r() % 2);
       }},
      {"convolution",
       [](ir::Context& c, std::mt19937& r) {
         return codegen::ConvolutionKernel(c, Convolution(r));
       }},
      {"input gradient",
       [](ir::Context& c, std::mt19937& r) {
         return codegen::ConvolutionInputGradientKernel(c, Convolution(r));
       }},
      {"weight gradient",
       [](ir::Context& c, std::mt19937& r) {
         return codegen::ConvolutionWeightGradientKernel(c, Convolution(r));
       }},
      {"softmax",
       [](ir::Context& c, std::mt19937& r) { return codegen::SoftmaxKernel(c, Size(r), Size(r)); }},
      {"chain", [](ir::Context& c, std::mt19937& r) { return codegen::ChainKernel(c, Size(r)); }},
      {"reduction", Reduction},
      {"view", View},
  };
  return *families;
}

TEST(Heuristic, EveryScheduleFitsItsKernel) {
  const std::vector<drivers::Target> targets = Targets();
  for (const Family& family : Families()) {
    std::mt19937 random(1);
    for (int i = 0; i < 120; ++i) {
      ir::Context context;
      const kernel::Kernel kernel = family.make(context, random);
      for (const drivers::Target& target : {targets[random() % 24], targets[random() % 24]}) {
        const schedule::Schedule schedule = Choose(kernel, target);
        auto program = schedule::Apply(kernel, schedule);
        ASSERT_TRUE(program.ok()) << family.name << " " << i << ": " << program.status() << "\n"
                                  << schedule::Print(schedule);
        EXPECT_GE(program->grid_size(), 1) << family.name << " " << i;
        // The memory that a thread needs in addition to the arguments is bounded.
        EXPECT_LE(program->scratch_bytes, int64_t{64} << 20)
            << family.name << " " << i << "\n"
            << kernel::Print(kernel) << schedule::Print(schedule);
      }
    }
  }
}

TEST(Heuristic, ChoosesTheSameAgain) {
  ir::Context context;
  const kernel::Kernel kernel = codegen::MatmulKernel(context, 300, 200, 100);
  const drivers::Target target = Targets().back();
  EXPECT_EQ(schedule::Print(Choose(kernel, target)), schedule::Print(Choose(kernel, target)));
}

TEST(Heuristic, SmallKernelsAreOneTask) {
  ir::Context context;
  drivers::Target target = Targets().back();
  for (const kernel::Kernel& kernel :
       {codegen::ChainKernel(context, 1000), codegen::SoftmaxKernel(context, 10, 50)}) {
    auto program = schedule::Apply(kernel, Choose(kernel, target));
    ASSERT_TRUE(program.ok()) << program.status();
    EXPECT_EQ(program->grid_size(), 1) << kernel.name;
  }
}

TEST(Heuristic, LargeKernelsKeepAllThreadsBusy) {
  ir::Context context;
  drivers::Target target = Targets().back();
  target.limits.compute_units = 8;
  for (const kernel::Kernel& kernel :
       {codegen::ChainKernel(context, 1 << 22), codegen::SoftmaxKernel(context, 4096, 1000),
        codegen::MatmulKernel(context, 1024, 1024, 1024),
        codegen::MatmulKernel(context, 1, 4096, 4096),
        codegen::ConvolutionKernel(context, {128, 32, 32, 24, 5}),
        codegen::ConvolutionWeightGradientKernel(context, {128, 32, 32, 24, 5})}) {
    auto program = schedule::Apply(kernel, Choose(kernel, target));
    ASSERT_TRUE(program.ok()) << program.status();
    EXPECT_GE(program->grid_size(), 8) << kernel.name;
  }
}

TEST(RegisterTile, FitsTheRegisters) {
  for (int registers : {16, 32}) {
    drivers::Target target;
    target.limits.vector_registers = registers;
    for (int64_t vectors = 1; vectors < 8; ++vectors) {
      for (int64_t rows : {1, 2, 5, 6, 13, 100}) {
        for (int64_t more : {1, 3, 5, 64}) {
          const RegisterTile tile = ChooseTile(vectors, 4, rows, more, target);
          EXPECT_LT(tile.vectors * tile.rows * tile.more_rows + tile.vectors, registers);
          EXPECT_LE(tile.rows, rows);
          EXPECT_LE(tile.more_rows, more);
          EXPECT_LE(tile.vectors, vectors);
          EXPECT_GT(tile.cycles, 0);
        }
      }
    }
  }
}

}  // namespace
}  // namespace kiln::search
