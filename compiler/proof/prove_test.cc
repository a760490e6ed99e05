// Tests that the proof accepts the results of schedules.
#include "compiler/proof/prove.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler/codegen/testing/sample_kernels.h"
#include "compiler/ir/walk.h"
#include "compiler/kernel/expression_folder.h"
#include "compiler/schedule/apply/apply.h"
#include "compiler/search/heuristics/heuristic.h"

namespace kiln::proof {
namespace {

std::vector<drivers::Target> Targets() {
  std::vector<drivers::Target> targets;
  for (const int vector_bytes : {16, 32, 64}) {
    for (const int64_t cache_kib : {64, 256, 512, 1024, 2048}) {
      for (const int units : {1, 2, 8}) {
        drivers::Target& target = targets.emplace_back();
        target.architecture = "x86-64";
        target.limits.vector_bytes = vector_bytes;
        target.limits.vector_registers = vector_bytes == 64 ? 32 : 16;
        target.limits.private_cache_bytes = cache_kib << 10;
        target.limits.compute_units = units;
      }
    }
  }
  return targets;
}

absl::Status ProveChosen(const kernel::Kernel& kernel, const drivers::Target& target) {
  const schedule::Schedule schedule = search::Choose(kernel, target);
  auto program = schedule::Apply(kernel, schedule);
  return program.ok() ? Prove(kernel, schedule, *program) : program.status();
}

// The rows of the padded input, 2 * h + i, are copied with h in the loops around the copy: the rest
// of the sum has step 2 and no axis of step 1.
TEST(Prove, CopiesOfStridedWindows) {
  const codegen::ConvolutionShape shapes[] = {
      {128, 1, 32, 28, 4, 1, 2},   {128, 3, 64, 28, 4, 1, 2}, {256, 32, 64, 16, 3, 1, 2},
      {128, 64, 128, 32, 3, 1, 2}, {32, 3, 16, 96, 7, 3, 2},  {9, 4, 24, 31, 5, 2, 3}};
  for (const drivers::Target& target : Targets()) {
    for (const codegen::ConvolutionShape& shape : shapes) {
      ir::Context context;
      EXPECT_EQ(ProveChosen(codegen::ConvolutionWeightGradientKernel(context, shape), target),
                absl::OkStatus())
          << target.CacheKey() << ", " << shape.in_channels << " to " << shape.out_channels;
    }
  }
}

// A forward pass with padding, the gradient of its input, of its weights, and of the input of a
// strided convolution: dy[n, c, (y - ky) / 2, x / 2] where y - ky is even.
constexpr const char* kPadded[] = {
    R"(buffer b0 float32[4096] read
buffer b1 float32[1152] read
buffer b2 float32[8192] write
stage r0:8 r1:16 r2:8 r3:8 reduce r4:8 r5:3 r6:3
  b2[r0*1024 + r1*64 + r2*8 + r3] = sum(b0[r0*512 + r4*64 + r2*8 + r5*8 + r3 + r6 + -9 if and(and(and(cmplt(0, r2 + r5), cmplt(0, r3 + r6)), cmplt(r2 + r5, 9)), cmplt(r3 + r6, 9))]*b1[r1*72 + r4*9 + r5*3 + r6])
)",
    R"(buffer b0 float32[3200] read
buffer b1 float32[16384] read
buffer b2 float32[18432] write
stage r0:16 r1:8 r2:12 r3:12 reduce r4:5 r5:5 r6:16
  b2[r0*1152 + r1*144 + r2*12 + r3] = sum(b1[r0*1024 + r6*64 + r2*8 + r4*-8 + r3 + r5*-1 if and(and(and(cmplt(-1, r2 + r4*-1), cmplt(-1, r3 + r5*-1)), cmplt(r2 + r4*-1, 8)), cmplt(r3 + r5*-1, 8))]*b0[r6*200 + r1*25 + r4*5 + r5])
)",
    R"(buffer b0 float32[8192] read
buffer b1 float32[4096] read
buffer b2 float32[1152] write
stage r0:16 r1:8 r2:3 r3:3 reduce r4:8 r5:8 r6:8
  b2[r0*72 + r1*9 + r2*3 + r3] = sum(b0[r4*1024 + r0*64 + r5*8 + r6]*b1[r4*512 + r1*64 + r2*8 + r5*8 + r3 + r6 + -9 if and(and(and(cmplt(0, r2 + r5), cmplt(0, r3 + r6)), cmplt(r2 + r5, 9)), cmplt(r3 + r6, 9))])
)",
    R"(buffer b0 float32[1152] read
buffer b1 float32[16384] read
buffer b2 float32[34816] write
stage r0:16 r1:8 r2:17 r3:16 reduce r4:3 r5:16
  b2[r0*2176 + r1*272 + r2*16 + r3] = sum(b1[r0*1024 + r5*64 + (r2 + r4*-1)//2*8 + r3//2 if and(and(cmplt(-1, r2 + r4*-1), cmplt(r2 + r4*-1, 16)), cmpeq((r2 + r4*-1)%2, 0))]*b0[r5*24 + r1*3 + r4])
)"};

// Changes the condition of a branch in all ways that a mistake might. `step`: from one point at
// which a term may be needed to the next.
std::vector<schedule::Branch> Faults(const schedule::Branch& right, int64_t step,
                                     ir::Context& context) {
  using ir::Op;
  std::vector<schedule::Branch> faults;
  const auto with = [&](const ir::Node* condition) {
    faults.push_back(right);
    faults.back().condition = condition;
  };
  const auto number = [&](bool value) {
    return context.Get(Op::kConst, ir::DType::kBool, {}, {}, ir::ConstValue::Int(value ? 1 : 0));
  };
  with(number(false));
  with(number(true));
  with(context.Get(Op::kNot, ir::DType::kBool, {}, {right.condition}));
  std::vector<const ir::Node*> comparisons;
  for (const ir::Node* node : ir::TopologicalOrder({&right.condition, 1})) {
    if (node->op() == Op::kCmpLt) comparisons.push_back(node);
  }
  for (const ir::Node* less : comparisons) {
    for (const int64_t by : {-step, step}) {
      const ir::Node* moved = context.Get(
          Op::kAdd, ir::DType::kInt64, {},
          {less->operand(1),
           context.Get(Op::kConst, ir::DType::kInt64, {}, {}, ir::ConstValue::Int(by))});
      kernel::ExpressionFolder::Map memo = {
          {less, context.Get(Op::kCmpLt, ir::DType::kBool, {}, {less->operand(0), moved})}};
      with(kernel::ExpressionFolder(context).Substitute(right.condition, &memo));
    }
  }
  return faults;
}

void ForEachBranch(std::vector<schedule::Statement>* body,
                   const std::function<void(schedule::Branch*)>& visit) {
  for (schedule::Statement& statement : *body) {
    if (auto* loop = std::get_if<schedule::Loop>(&statement.node)) {
      ForEachBranch(&loop->body, visit);
    } else if (auto* branch = std::get_if<schedule::Branch>(&statement.node)) {
      ForEachBranch(&branch->then_body, visit);
      visit(branch);
    }
  }
}

// The loads inside have no conditions of their own, so that a term too many reads another element.
TEST(Prove, TermsThatAreSkippedAreThoseOfPadding) {
  int faults = 0;
  for (const char* text : kPadded) {
    ir::Context context;
    const absl::StatusOr<kernel::Kernel> kernel = kernel::ParseKernel(text, context);
    ASSERT_EQ(kernel.status(), absl::OkStatus());
    const int64_t step = absl::StrContains(text, "%2") ? 2 : 1;
    const size_t sums = kernel->stages[0].reduce_ranges.size();
    std::string order = "skip 0\norder 0 1 2 3";
    for (size_t i = 0; i < sums; ++i) absl::StrAppend(&order, " ", 4 + (i + 1) % sums);
    for (const std::string& directives : {std::string("skip 0\n"), order + " 0\n"}) {
      const absl::StatusOr<schedule::Schedule> schedule = schedule::Parse(directives);
      ASSERT_EQ(schedule.status(), absl::OkStatus());
      auto program = schedule::Apply(*kernel, *schedule);
      ASSERT_EQ(program.status(), absl::OkStatus());
      ASSERT_EQ(Prove(*kernel, *schedule, *program), absl::OkStatus()) << Print(*program);
      int branches = 0;
      ForEachBranch(&program->sections[0].body, [&](schedule::Branch* branch) {
        ++branches;
        const schedule::Branch right = *branch;
        for (schedule::Branch& fault : Faults(right, step, *program->context)) {
          *branch = std::move(fault);
          const absl::Status status = Prove(*kernel, *schedule, *program);
          EXPECT_TRUE(IsDisproof(status)) << status << "\n" << Print(*program);
          ++faults;
        }
        *branch = right;
      });
      EXPECT_GE(branches, 1) << Print(*program);
    }
  }
  EXPECT_GE(faults, 80);
}

TEST(Prove, PaddingIsSkippedOnAllTargets) {
  int skipping = 0;
  for (const drivers::Target& target : Targets()) {
    for (const char* text : kPadded) {
      ir::Context context;
      const absl::StatusOr<kernel::Kernel> kernel = kernel::ParseKernel(text, context);
      ASSERT_EQ(kernel.status(), absl::OkStatus());
      schedule::Schedule schedule = search::Choose(*kernel, target);
      if (absl::StrContains(schedule::Print(schedule), "skip")) ++skipping;
      schedule.directives.emplace_back(schedule::Skip{0});
      const auto program = schedule::Apply(*kernel, schedule);
      ASSERT_EQ(program.status(), absl::OkStatus());
      EXPECT_EQ(Prove(*kernel, schedule, *program), absl::OkStatus()) << target.CacheKey();
    }
  }
  EXPECT_GT(skipping, 20);
}

// The index is in bounds because of the range of its dtype.
TEST(Prove, TablesThatAreAsLongAsTheDTypeOfTheirIndices) {
  constexpr char kTable[] =
      "buffer b0 float32[256] read\n"
      "buffer b1 uint8[1000] read\n"
      "buffer b2 int32[1000] read\n"
      "buffer b3 float32[1000] write\n"
      "stage r0:1000\n"
      "  b3[r0] = b0[int64(b1[r0])] + b0[int64(b1[r0]*b1[r0])] + b0[int64(uint8(b2[r0]))]\n";
  ir::Context context;
  const absl::StatusOr<kernel::Kernel> kernel = kernel::ParseKernel(kTable, context);
  ASSERT_EQ(kernel.status(), absl::OkStatus());
  for (const drivers::Target& target : Targets()) {
    EXPECT_EQ(ProveChosen(*kernel, target), absl::OkStatus()) << target.CacheKey();
  }
}

// An element that no sampled point has written must still have the local's dtype.
TEST(Prove, LocalsThatAreIndices) {
  constexpr char kLocals[] =
      "buffer b0 float32[256] read\n"
      "buffer b1 uint8[3000] read\n"
      "buffer b2 float32[3000] write\n"
      "buffer b3 uint8[1000] local\n"
      "grid r0:3\n"
      "stage r1:1000\n"
      "  b3[r1] = b1[r0*1000 + r1]\n"
      "stage r2:1000\n"
      "  b2[r0*1000 + r2] = b0[int64(b3[999 - r2])]\n";
  ir::Context context;
  const absl::StatusOr<kernel::Kernel> kernel = kernel::ParseKernel(kLocals, context);
  ASSERT_EQ(kernel.status(), absl::OkStatus());
  for (const drivers::Target& target : Targets()) {
    EXPECT_EQ(ProveChosen(*kernel, target), absl::OkStatus()) << target.CacheKey();
  }
}

}  // namespace
}  // namespace kiln::proof
