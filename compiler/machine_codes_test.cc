#include "compiler/machine_codes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/codegen/codegen.h"
#include "compiler/compiler.h"
#include "compiler/graph/text.h"
#include "compiler/kernel/kernel.h"

namespace kiln::compiler {
namespace {

using testing::HasSubstr;
using testing::Not;

drivers::Target TargetOf(std::string_view architecture) {
  drivers::Target target;
  target.architecture = std::string(architecture);
  if (architecture == "nvptx64") {
    target.processor = "sm_80";
    target.features = "+ptx78";
  } else if (architecture == "amdgcn") {
    target.processor = "gfx1100";
    target.limits.threads_per_subgroup = 32;
  }
  return target;
}

TEST(MachineCodesTest, EveryRowIsWholeAndFound) {
  std::set<std::string_view> architectures;
  for (const codegen::MachineCode& row : MachineCodes()) {
    EXPECT_TRUE(architectures.insert(row.architecture).second) << row.architecture;
    EXPECT_TRUE(row.supports && row.choose && row.choose_by && row.assemble && row.disassemble)
        << row.architecture;
    const auto found = FindMachineCode(row.architecture);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(*found, &row);
  }
}

TEST(MachineCodesTest, AnUnknownArchitectureIsNamedWithThoseThereAre) {
  const absl::Status status = FindMachineCode("abacus").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("\"abacus\"; use one of x86-64, opencl-c, nvptx64, amdgcn, spirv64, null"));
}

TEST(MachineCodesTest, NothingIsCompiledForAnUnknownArchitecture) {
  const auto graph = graph::Parse(
      "input 0 float32[4]\n%0 = input float32[4] index=0\n%1 = neg float32[4] %0\noutput %1\n");
  ASSERT_TRUE(graph.ok()) << graph.status();
  const absl::Status compiled = Compile(*graph, TargetOf("abacus"), {}).status();
  EXPECT_EQ(compiled.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(compiled.message()), HasSubstr("abacus"));
  drivers::KernelImage image;
  image.architecture = "abacus";
  image.code = "beads";
  EXPECT_EQ(Disassemble(image, TargetOf("abacus")).status().code(),
            absl::StatusCode::kUnimplemented);
}

constexpr char kKernel[] =
    "buffer b0 float32[100] read\nbuffer b1 float32[100] write\n"
    "stage r0:100\n  b1[r0] = exp2(b0[r0])\n";

TEST(MachineCodesTest, ANullKernelHasAllButCode) {
  ir::Context context;
  const auto kernel = kernel::ParseKernel(kKernel, context);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  const auto row = FindMachineCode("null");
  ASSERT_TRUE(row.ok()) << row.status();
  const drivers::Target target = TargetOf("null");
  const auto image =
      codegen::CompileKernel(**row, *kernel, (*row)->choose(*kernel, target), target);
  ASSERT_TRUE(image.ok()) << image.status();
  EXPECT_EQ(image->architecture, "null");
  EXPECT_EQ(image->num_arguments, 2);
  EXPECT_EQ(image->code, "");
  EXPECT_EQ(*Disassemble(*image, target), "");
}

TEST(MachineCodesTest, ImagesSayWhatBecomesOfEachArgument) {
  using drivers::Access;
  const auto expect = [](const char* text, const std::vector<Access>& access) {
    ir::Context context;
    const auto kernel = kernel::ParseKernel(text, context);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    for (const codegen::MachineCode& row : MachineCodes()) {
      const auto image = codegen::CompileKernel(row, *kernel, {}, TargetOf(row.architecture));
      ASSERT_TRUE(image.ok()) << image.status();
      EXPECT_EQ(image->access, access) << row.architecture;
    }
  };
  expect(
      "buffer b0 float32[64] read\nbuffer b1 float32[64] write\nbuffer b2 float32[64] local\n"
      "stage r0:64\n  b2[r0] = neg(b0[r0])\nstage r1:64\n  b1[r1] = b2[r1]\n",
      {Access::kRead, Access::kWrite});
  expect(
      "buffer b0 float32[8] read\nbuffer b1 int64[8] read\nbuffer b2 float32[16] update\n"
      "stage order r0:8\n  b2[b1[r0]%16] = b2[b1[r0]%16] + b0[r0]\n",
      {Access::kRead, Access::kRead, Access::kReadWrite});
}

drivers::Target Gpu() {
  drivers::Target target = TargetOf("nvptx64");
  target.limits.compute_units = 4;
  target.limits.threads_per_block = 1024;
  target.limits.threads_per_subgroup = 32;
  target.capabilities.fma = true;
  return target;
}

absl::StatusOr<drivers::KernelImage> CompileFor(const drivers::Target& target,
                                                const std::string& text) {
  ir::Context context;
  const auto kernel = kernel::ParseKernel(text, context);
  if (!kernel.ok()) return kernel.status();
  const codegen::MachineCode& row = **FindMachineCode(target.architecture);
  return codegen::CompileKernel(row, *kernel, row.choose(*kernel, target), target);
}

// Rounds of sorting networks exchange blocks of elements, which are whole vectors or within one.
TEST(MachineCodesTest, BlocksThatChangePlacesAreReadAsVectors) {
  for (const int vector_bytes : {32, 64}) {
    drivers::Target target = TargetOf("x86-64");
    target.processor = vector_bytes == 64 ? "x86-64-v4" : "x86-64-v3";
    target.features = vector_bytes == 64 ? "+avx512f,+avx512vl,+avx512dq,+avx512bw" : "+avx2";
    target.limits.vector_bytes = vector_bytes;
    target.limits.vector_registers = vector_bytes / 2;
    for (const int block : {1, 2, 4, 8, 64, 1024}) {
      for (const bool flipped : {false, true}) {
        const int pair = 2 * block;
        const std::string partner =
            flipped ? absl::StrCat("r0//", pair, "*", pair, " + r0%", pair, "*-1 + ", pair - 1)
                    : absl::StrCat("r0//", pair, "*", pair, " + r0//", block, "%2*-", block,
                                   " + r0%", block, " + ", block);
        const auto image = CompileFor(
            target, absl::StrCat("buffer b0 int64[65536] read\nbuffer b1 int64[65536] write\n"
                                 "stage r0:65536\n  b1[r0] = b0[r0] + b0[",
                                 partner, "]\n"));
        ASSERT_TRUE(image.ok()) << image.status();
        const auto text = Disassemble(*image, target);
        ASSERT_TRUE(text.ok()) << text.status();
        EXPECT_THAT(*text, HasSubstr(vector_bytes == 64 ? "zmm" : "ymm"));
        EXPECT_THAT(*text, Not(HasSubstr("gather"))) << partner << "\n" << *text;
      }
    }
  }
}

// Some float32 functions are computed in float64.
TEST(MachineCodesTest, SpirvWithoutFloat64LacksSomeFunctions) {
  drivers::Target target = TargetOf("spirv64");
  target.capabilities = {.fma = true, .fp64 = false, .fp16 = true};
  const auto image = CompileFor(target, kKernel);
  ASSERT_TRUE(image.ok()) << image.status();
  EXPECT_TRUE(image->takes_slot_table);
  const auto text = Disassemble(*image, target);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr("OpFMul"));
  EXPECT_THAT(*text, Not(testing::ContainsRegex("OpTypeFloat 64")));
  const absl::Status sine = CompileFor(target,
                                       "buffer b0 float32[100] read\nbuffer b1 float32[100] write\n"
                                       "stage r0:100\n  b1[r0] = sin(b0[r0])\n")
                                .status();
  EXPECT_EQ(sine.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(sine.message()),
              HasSubstr("cannot generate code for sin of float32 on spirv64"));
}

TEST(MachineCodesTest, APtxKernelHasATableAndANumberForEachArgumentAndAThreadForEachTask) {
  const auto image = CompileFor(Gpu(), kKernel);
  ASSERT_TRUE(image.ok()) << image.status();
  EXPECT_EQ(image->block_size, 32);
  EXPECT_EQ(image->grid_size, 4);
  EXPECT_THAT(image->access, testing::ElementsAre(drivers::Access::kRead, drivers::Access::kWrite));
  EXPECT_THAT(image->code, HasSubstr(".version 7.8\n.target sm_80\n"));
  EXPECT_THAT(image->code, HasSubstr(".visible .entry kernel("));
  EXPECT_TRUE(image->takes_slot_table);
  // The last parameter is the launch's first block.
  EXPECT_TRUE(image->runs_parts);
  EXPECT_EQ(image->num_parameters(), 4);
  EXPECT_THAT(image->code, HasSubstr("kernel_param_3"));
  EXPECT_THAT(image->code, Not(HasSubstr("kernel_param_4")));
  EXPECT_THAT(image->code, HasSubstr(".maxntid 32"));
  // Read-only data is loaded through the non-coherent caches.
  EXPECT_THAT(image->code, HasSubstr("ld.global.nc.b32"));
  EXPECT_EQ(*Disassemble(*image, Gpu()), image->code);
}

TEST(MachineCodesTest, AKernelOfMoreArgumentsThanTheTargetTakesIsRefused) {
  drivers::Target target = Gpu();
  target.limits.arguments_max = 2;
  EXPECT_TRUE(CompileFor(target, kKernel).ok());
  target.limits.arguments_max = 1;
  const absl::Status status = CompileFor(target, kKernel).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("takes 2 arguments"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("takes at most 1"));
}

// Otherwise sums would differ from those of devices that round products.
TEST(MachineCodesTest, PtxRoundsEachOperationByItself) {
  const auto image = CompileFor(Gpu(), R"(buffer b0 float32[64] read
buffer b1 float32[64] write
stage r0:64
  b1[r0] = div(b0[r0]*b0[r0] + b0[r0], sqrt(b0[r0]))
)");
  ASSERT_TRUE(image.ok()) << image.status();
  for (const char* operation : {"mul.rn.f32", "add.rn.f32", "div.rn.f32", "sqrt.rn.f32"})
    EXPECT_THAT(image->code, HasSubstr(operation));
  EXPECT_THAT(image->code, Not(HasSubstr("fma")));
}

TEST(MachineCodesTest, PtxIsWrittenForKnownProcessorsOnly) {
  drivers::Target target = Gpu();
  target.processor = "sm_1";
  const absl::Status status = CompileFor(target, kKernel).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("unknown processor for PTX \"sm_1\""));
}

TEST(MachineCodesTest, APtxKernelThatKeepsTooMuchIsRefused) {
  ir::Context context;
  const auto kernel = kernel::ParseKernel(R"(buffer b0 float32[20000] read
buffer b1 float32[20000] write
buffer b2 float32[20000] local
stage r0:20000
  b2[r0] = b0[r0]
stage r1:20000
  b1[r1] = b2[r1*-1 + 19999]
)",
                                          context);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  const absl::Status status =
      codegen::CompileKernel(**FindMachineCode("nvptx64"), *kernel, {}, Gpu()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()), HasSubstr("80000 bytes"));
}

drivers::Target AmdGpu() {
  drivers::Target target = Gpu();
  target.architecture = "amdgcn";
  target.processor = "gfx90a";
  target.features = "+sramecc,-xnack";
  target.limits.threads_per_subgroup = 64;
  return target;
}

TEST(MachineCodesTest, AKernelForAmdsGpusIsACodeObjectWithAThreadForEachTask) {
  const auto image = CompileFor(AmdGpu(), kKernel);
  ASSERT_TRUE(image.ok()) << image.status();
  EXPECT_EQ(image->architecture, "amdgcn");
  EXPECT_EQ(image->block_size, 64);
  EXPECT_EQ(image->grid_size, 2);
  EXPECT_TRUE(image->takes_slot_table);
  EXPECT_EQ(image->code.substr(0, 4),
            "\x7f"
            "ELF");
  EXPECT_THAT(image->code, HasSubstr("kernel.kd"));
  EXPECT_THAT(image->code, HasSubstr("amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-"));
  const auto text = Disassemble(*image, AmdGpu());
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr("kernel:\n"));
  EXPECT_THAT(*text, HasSubstr("global_load_dword"));
  EXPECT_THAT(*text, HasSubstr("s_endpgm"));
}

TEST(MachineCodesTest, WhatIsNotSupportedIsNamedWithTheTarget) {
  ir::Context context;
  const auto kernel = kernel::ParseKernel(kKernel, context);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  codegen::MachineCode row = MachineCodes()[0];
  row.supports = [](const ir::Node* node, const drivers::Target&) {
    return node->op() != ir::Op::kExp2;
  };
  const absl::Status status = codegen::CheckSupported(row, *kernel, TargetOf("abacus"));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(status.message(), "cannot generate code for exp2 of float32 on abacus");
}

TEST(MachineCodesTest, Float64NeedsATargetThatHasIt) {
  ir::Context context;
  const auto kernel = kernel::ParseKernel(
      "buffer b0 float64[100] read\nbuffer b1 float64[100] write\n"
      "stage r0:100\n  b1[r0] = neg(b0[r0])\n",
      context);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  for (const codegen::MachineCode& row : MachineCodes()) {
    drivers::Target target = TargetOf(row.architecture);
    EXPECT_TRUE(codegen::CheckSupported(row, *kernel, target).ok()) << row.architecture;
    target.capabilities.fp64 = false;
    const absl::Status status = codegen::CheckSupported(row, *kernel, target);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(std::string(row.architecture) + " has no float64"));
  }
}

}  // namespace
}  // namespace kiln::compiler
