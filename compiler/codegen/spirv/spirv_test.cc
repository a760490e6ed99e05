// The SPIR-V that is written, and the modules that are refused. tests/numerics tests results.
#include "compiler/codegen/spirv/spirv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "compiler/codegen/spirv/child_process.h"
#include "compiler/codegen/spirv/disassemble.h"
#include "compiler/codegen/testing/ir_text.h"

namespace kiln::codegen {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

drivers::Target Gpu() {
  drivers::Target target;
  target.architecture = kSpirvArchitecture;
  return target;
}

// Returns a kernel with two arguments in global memory.
std::string Kernel(const std::string& body) {
  return "define spir_kernel void @kernel(ptr addrspace(1) %a, ptr addrspace(1) %b) {\n" + body +
         "  ret void\n}\n";
}

std::string Text(const std::string& body) {
  const auto words = EmitSpirvFromText(Kernel(body), Gpu());
  if (!words.ok()) return words.status().ToString();
  const auto text = DisassembleSpirvWords(*words);
  return text.ok() ? *text : text.status().ToString();
}

TEST(SpirvTest, AModuleIsOfVersion12AndContractsNothing) {
  const std::string text = Text(R"(
  %x = load float, ptr addrspace(1) %a
  %product = fmul float %x, %x
  %sum = fadd float %product, %x
  store float %sum, ptr addrspace(1) %b
)");
  EXPECT_THAT(text, HasSubstr("; SPIR-V 1.2,"));
  EXPECT_THAT(text, HasSubstr("OpFMul"));
  EXPECT_THAT(text, HasSubstr("OpFAdd"));
  EXPECT_THAT(text, HasSubstr(" \"kernel\""));
  // ContractionOff (SPIR-V, 3.6).
  EXPECT_THAT(text, ::testing::ContainsRegex("OpExecutionMode %[0-9]+ 31\n"));
}

// The backend would reuse a module's state for the next one in its process.
TEST(SpirvTest, ModulesDoNotDependOnThoseBefore) {
  const std::string one = Kernel("  store i32 1, ptr addrspace(1) %b\n");
  const std::string other = Kernel(R"(
  %x = load double, ptr addrspace(1) %a
  %y = fmul double %x, 3.0
  store double %y, ptr addrspace(1) %b
)");
  const auto first = EmitSpirvFromText(one, Gpu());
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = EmitSpirvFromText(other, Gpu());
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(*EmitSpirvFromText(one, Gpu()), *first);
  EXPECT_EQ(*EmitSpirvFromText(other, Gpu()), *second);
}

TEST(SpirvTest, ThreadsWriteModulesAtOnce) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "this sanitizer's allocator may be locked by another thread when a process forks";
#endif
  const std::string text = Kernel("  store i32 1, ptr addrspace(1) %b\n");
  const auto expected = EmitSpirvFromText(text, Gpu());
  ASSERT_TRUE(expected.ok()) << expected.status();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 10; ++k) EXPECT_EQ(*EmitSpirvFromText(text, Gpu()), *expected);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(SpirvTest, ExtensionsOfTruncatedNumbersAreMasksAndShifts) {
  const std::string text = Text(R"(
  %x = load i64, ptr addrspace(1) %a
  %byte = trunc i64 %x to i8
  %word = zext i8 %byte to i32
  %signed = sext i8 %byte to i32
  %sum = add i32 %word, %signed
  store i32 %sum, ptr addrspace(1) %b
)");
  EXPECT_THAT(text, HasSubstr("OpBitwiseAnd"));
  EXPECT_THAT(text, HasSubstr("OpShiftRightArithmetic"));
  EXPECT_THAT(text, Not(HasSubstr("OpSConvert")));
}

TEST(SpirvTest, MaskedAccessesAreOneForEachLane) {
  const std::string text = Text(R"(
  %n = load i32, ptr addrspace(1) %b
  %some = icmp slt i32 %n, 3
  %m0 = insertelement <4 x i1> <i1 true, i1 false, i1 true, i1 false>, i1 %some, i64 3
  %x = call <4 x float> @llvm.masked.load.v4f32.p1(ptr addrspace(1) align 4 %a, <4 x i1> %m0, <4 x float> zeroinitializer)
  call void @llvm.masked.store.v4f32.p1(<4 x float> %x, ptr addrspace(1) align 4 %b, <4 x i1> %m0)
)");
  EXPECT_THAT(text, HasSubstr("OpBranchConditional"));
  EXPECT_THAT(text, HasSubstr("OpPhi"));
  EXPECT_THAT(text, HasSubstr("OpStore"));
}

TEST(SpirvTest, GathersFindTheirPointersOneByOne) {
  const std::string text = Text(R"(
  %at = getelementptr float, ptr addrspace(1) %a, <4 x i64> <i64 0, i64 3, i64 7, i64 1>
  %x = call <4 x float> @llvm.masked.gather.v4f32.v4p1(<4 x ptr addrspace(1)> align 4 %at, <4 x i1> splat(i1 true), <4 x float> zeroinitializer)
  store <4 x float> %x, ptr addrspace(1) %b
)");
  EXPECT_THAT(text, HasSubstr("OpLoad"));
  EXPECT_THAT(text, HasSubstr("OpCompositeInsert"));
}

TEST(SpirvTest, WhatTheBackendLacksIsRefused) {
  const struct {
    const char* body;
    const char* what;
  } rows[] = {
      {"  %x = load i128, ptr addrspace(1) %a\n  store i128 %x, ptr addrspace(1) %b\n",
       "integers of 128 bits"},
      {"  %x = load <32 x float>, ptr addrspace(1) %a\n  store <32 x float> %x, ptr addrspace(1) "
       "%b\n",
       "vectors of 32"},
      {"  call void @llvm.prefetch.p1(ptr addrspace(1) %a, i32 0, i32 3, i32 1)\n",
       "llvm.prefetch"},
  };
  for (const auto& row : rows) {
    const absl::Status status = EmitSpirvFromText(Kernel(row.body), Gpu()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << row.what;
    EXPECT_THAT(std::string(status.message()), HasSubstr(row.what));
  }
}

TEST(SpirvTest, TargetsOfOtherArchitecturesAreRefused) {
  drivers::Target other;
  other.architecture = "x86-64";
  EXPECT_EQ(EmitSpirvFromText(Kernel(""), other).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(SpirvDisassembleTest, WhatIsNoModuleIsRefused) {
  const auto words = EmitSpirvFromText(Kernel(""), Gpu());
  ASSERT_TRUE(words.ok()) << words.status();
  EXPECT_FALSE(DisassembleSpirvWords("").ok());
  EXPECT_FALSE(DisassembleSpirvWords("#include <stdio.h>, say").ok());
  EXPECT_FALSE(DisassembleSpirvWords(words->substr(0, words->size() - 2)).ok());
  std::string damaged = *words;
  damaged[5 * 4 + 2] = 127;  // the first instruction's length
  EXPECT_THAT(std::string(DisassembleSpirvWords(damaged).status().message()), HasSubstr("at word"));
}

TEST(ChildProcessTest, BringsBackWhatIsReturned) {
  const std::string large(3 << 20, 'x');
  EXPECT_EQ(*InChildProcess([&] { return large; }), large);
  EXPECT_EQ(*InChildProcess([] { return std::string(); }), "");
}

TEST(ChildProcessTest, AnEndIsAnErrorWithWhatWasSaid) {
  const absl::Status aborted = InChildProcess([]() -> std::string {
                                 fputs("LLVM ERROR: Cannot select\n", stderr);
                                 abort();
                               }).status();
  EXPECT_EQ(aborted.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(aborted.message()),
              HasSubstr("was ended by signal 6: LLVM ERROR: Cannot select"));
  const absl::Status exited = InChildProcess([]() -> std::string { _exit(7); }).status();
  EXPECT_THAT(std::string(exited.message()), HasSubstr("exited with status 7"));
}

TEST(ChildProcessTest, MemoryThatRunsOutIsToldFromDefects) {
  const absl::Status status =
      InChildProcess([]() -> std::string { throw std::bad_alloc(); }).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
}

}  // namespace
}  // namespace kiln::codegen
