// Which kernels get blocks of threads, and that the blocks respect the target's limits.
#include "compiler/search/heuristics/block_chooser.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/codegen/testing/sample_kernels.h"
#include "compiler/kernel/text.h"
#include "compiler/schedule/apply/apply.h"

namespace kiln::search {
namespace {

drivers::Target Gpu(int threads = 1024, int64_t shared_bytes = 48 << 10) {
  drivers::Target target;
  target.architecture = "opencl-c";
  target.limits.compute_units = 16;
  target.limits.threads_per_block = threads;
  target.limits.threads_per_unit = 2048;
  target.limits.shared_bytes_per_block = shared_bytes;
  return target;
}

// Returns the program of the chosen schedule; without tasks if there is none.
schedule::LoopProgram Chosen(const kernel::Kernel& kernel, const drivers::Target& target) {
  const auto schedule = ChooseBlocks(kernel, target);
  if (!schedule) return {};
  auto program = schedule::Apply(kernel, *schedule);
  EXPECT_TRUE(program.ok()) << program.status();
  return *std::move(program);
}

bool HasBuffer(const schedule::LoopProgram& program, std::string_view name) {
  for (const schedule::LoopBuffer& buffer : program.buffers) {
    const bool shared = buffer.space == schedule::Space::kShared;
    if (shared && buffer.name.compare(0, name.size(), name) == 0) return true;
  }
  return false;
}

TEST(BlockChooserTest, MatmulsGetTilesWithBothFactorsInSharedMemory) {
  ir::Context context;
  const auto program = Chosen(codegen::MatmulKernel(context, 512, 512, 512), Gpu());
  EXPECT_EQ(program.threads, 256);
  EXPECT_EQ(program.grid_size(), 64);
  EXPECT_TRUE(HasBuffer(program, "staged"));
  EXPECT_EQ(program.shared_bytes, 2 * 64 * 16 * 4);
}

TEST(BlockChooserTest, FewTilesAreMadeSmaller) {
  ir::Context context;
  const auto program = Chosen(codegen::MatmulKernel(context, 128, 128, 512), Gpu());
  EXPECT_GE(program.grid_size(), 16);
  EXPECT_GE(program.threads, 32);
}

TEST(BlockChooserTest, RowsAreShared) {
  ir::Context context;
  const auto program = Chosen(codegen::SoftmaxKernel(context, 100, 1000), Gpu());
  EXPECT_EQ(program.threads, 256);
  EXPECT_EQ(program.grid_size(), 100);
  EXPECT_TRUE(HasBuffer(program, "total"));
}

TEST(BlockChooserTest, ShortRowsAndPointsStayWithOneThreadEach) {
  ir::Context context;
  EXPECT_FALSE(ChooseBlocks(codegen::SoftmaxKernel(context, 1000, 10), Gpu()).has_value());
  const auto points = kernel::ParseKernel(R"(buffer b0 float32[4096] read
buffer b1 float32[4096] write
stage r0:4096
  b1[r0] = b0[r0]*2:float32
)",
                                          context);
  ASSERT_TRUE(points.ok()) << points.status();
  EXPECT_FALSE(ChooseBlocks(*points, Gpu()).has_value());
}

drivers::Target GpuWithMatrixUnits() {
  drivers::Target target = Gpu();
  target.capabilities.matrix = true;
  target.limits.threads_per_subgroup = 32;
  target.limits.bytes_per_access = 16;
  target.limits.register_bytes_per_unit = 256 << 10;
  return target;
}

// A layer with a costly activation, such as gelu. Its operations are loops over a thread's sums,
// which do not take the memory that tiles need.
TEST(BlockChooserTest, ContractionsWithLongEpiloguesAreTiled) {
  for (const char* factor : {"float16", "float32"}) {
    std::string value = "sum(float32(b0[r0*768 + r2])*float32(b1[r1*768 + r2]))";
    if (factor == std::string("float32")) value = "sum(b0[r0*768 + r2]*b1[r1*768 + r2])";
    for (int i = 0; i < 100; ++i) value = absl::StrCat("(", value, "*0.5:float32 + 1:float32)");
    ir::Context context;
    const auto kernel = kernel::ParseKernel(
        absl::StrCat("buffer b0 ", factor, "[", 2048 * 768, "] read\nbuffer b1 ", factor, "[",
                     3072 * 768, "] read\nbuffer b2 float32[", 2048 * 3072,
                     "] write\nstage r0:2048 r1:3072 reduce r2:768\n  b2[r0*3072 + r1] = ", value,
                     "\n"),
        context);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    const auto program = Chosen(*kernel, GpuWithMatrixUnits());
    EXPECT_TRUE(HasBuffer(program, "staged")) << factor;
    EXPECT_FALSE(HasBuffer(program, "sum")) << factor;
  }
}

// A tile that needs more shared memory than there is.
TEST(BlockChooserTest, SmallTilesAreBetterThanNone) {
  ir::Context context;
  const auto program = Chosen(codegen::MatmulKernel(context, 512, 512, 512), Gpu(1024, 4 << 10));
  EXPECT_TRUE(HasBuffer(program, "staged"));
  EXPECT_LE(program.shared_bytes, 4 << 10);
}

// A layer with an odd number of classes, and its two gradients: each is odd along another side. The
// weights may be float32 in memory.
TEST(BlockChooserTest, MatrixUnitsTakeSizesThatDoNotComeOutEven) {
  const drivers::Target target = GpuWithMatrixUnits();
  constexpr int kRows = 1024, kClasses = 50257, kFeatures = 768;
  const struct {
    int rows, columns, terms;
  } sizes[] = {
      {kRows, kClasses, kFeatures}, {kClasses, kFeatures, kRows}, {kRows, kFeatures, kClasses}};
  for (int i = 0; i < 6; ++i) {
    const auto& [rows, columns, terms] = sizes[i / 2];
    const bool rounds = i % 2 == 1;
    ir::Context context;
    const auto kernel = kernel::ParseKernel(
        absl::StrCat(
            "buffer b0 float16[", rows * terms, "] read\nbuffer b1 ",
            rounds ? "float32[" : "float16[", columns * terms, "] read\nbuffer b2 float32[",
            rows * columns, "] write\nstage r0:", rows, " r1:", columns, " reduce r2:", terms,
            "\n  b2[r0*", columns, " + r1] = sum(float32(b0[r0*", terms, " + r2])*float32(",
            rounds ? "float16(" : "", "b1[r1*", terms, " + r2]", rounds ? ")" : "", "))\n"),
        context);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    const auto schedule = ChooseBlocks(*kernel, target);
    ASSERT_TRUE(schedule.has_value());
    const std::string text = schedule::Print(*schedule);
    EXPECT_NE(text.find(" matrix\n"), std::string::npos) << text;
    EXPECT_NE(text.find("pad "), std::string::npos) << text;
    EXPECT_GE(schedule::Apply(*kernel, *schedule)->threads, 128);
  }
}

TEST(BlockChooserTest, BlocksAreAsSmallAsTheTargetWants) {
  ir::Context context;
  for (const int threads : {64, 100, 128, 200}) {
    const int expected = threads < 128 ? 64 : 128;
    const auto matmul = Chosen(codegen::MatmulKernel(context, 512, 512, 512), Gpu(threads));
    EXPECT_EQ(matmul.threads, expected);
    EXPECT_TRUE(HasBuffer(matmul, "staged"));
    const auto rows = Chosen(codegen::SoftmaxKernel(context, 100, 1000), Gpu(threads));
    EXPECT_EQ(rows.threads, expected);
    EXPECT_EQ(rows.grid_size(), 100);
  }
}

TEST(BlockChooserTest, WhatTheTargetHasNotIsNotChosen) {
  ir::Context context;
  const kernel::Kernel matmul = codegen::MatmulKernel(context, 512, 512, 512);
  EXPECT_FALSE(ChooseBlocks(matmul, Gpu(1)).has_value());
  EXPECT_FALSE(ChooseBlocks(matmul, Gpu(32)).has_value());
  EXPECT_FALSE(ChooseBlocks(matmul, Gpu(1024, 1 << 10)).has_value());
}

}  // namespace
}  // namespace kiln::search
