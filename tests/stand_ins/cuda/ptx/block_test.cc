// Tests of threads, warps, barriers, calls and branches.
#include <numeric>

#include "tests/stand_ins/cuda/ptx/testing/run.h"

namespace kiln::stand_ins::ptx {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kOwnResult[] =
    "mul.wide.u32 %own, %t, 4; add.u64 %own, %own, %out; st.global.u32 [%own], %r9;";

// Returns %r9 of each thread of a block.
std::vector<uint32_t> OfEachThread(const std::string& body, uint32_t threads) {
  TestMemory memory;
  const Region to = memory.Allocate(threads * 4);
  const LaunchResult result = RunKernel(Kernel(absl::StrCat(body, kOwnResult)), memory, {to, to},
                                        {.block = {threads, 1, 1}});
  EXPECT_EQ(result.fault.message, "");
  return TestMemory::Values<uint32_t>(to);
}

Fault FaultOf(const std::string& body, uint32_t threads, const std::string& before = "",
              const LaunchOptions& options = {}) {
  TestMemory memory;
  const Region to = memory.Allocate(threads * 4);
  return RunKernel(Kernel(body, before), memory, {to, to}, {.block = {threads, 1, 1}}, options)
      .fault;
}

constexpr char kShared[] = ".shared .align 4 .b8 s[256];\n";
constexpr char kOwnShared[] =
    "mov.u32 %r1, s; shl.b32 %r2, %t, 2; add.u32 %r1, %r1, %r2; mov.u32 %r3, 7;";

TEST(PtxBlock, KnowsWhereThreadsAre) {
  TestMemory memory;
  const Region to = memory.Allocate(4 * 2 * 12);
  const LaunchResult result = RunKernel(Kernel(R"(
      mov.u32 %r1, %ctaid.y; mov.u32 %r2, %nctaid.x; mov.u32 %r3, %ctaid.x;
      mad.lo.u32 %r1, %r1, %r2, %r3;  // the block
      mov.u32 %r4, %ntid.x; mov.u32 %r5, %tid.y; mad.lo.u32 %r5, %r5, %r4, %t;
      mov.u32 %r6, %ntid.y; mul.lo.u32 %r4, %r4, %r6; mad.lo.u32 %r1, %r1, %r4, %r5;
      mul.wide.u32 %d1, %r1, 4; add.u64 %d1, %d1, %out; st.global.u32 [%d1], %r1;)"),
                                        memory, {to, to}, {.grid = {2, 1, 1}, .block = {4, 3, 1}});
  EXPECT_EQ(result.fault.message, "");
  std::vector<uint32_t> expected(24);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(TestMemory::Values<uint32_t>(to), expected);
}

TEST(PtxBlock, BarriersOrderSharedMemory) {
  TestMemory memory;
  const Region to = memory.Allocate(64 * 4);
  const std::string body = absl::StrCat(kOwnShared, R"(
      st.shared.u32 [%r1], %t;
      bar.sync 0;
      xor.b32 %r4, %t, 33; shl.b32 %r4, %r4, 2; mov.u32 %r5, s; add.u32 %r5, %r5, %r4;
      ld.shared.u32 %r9, [%r5];)",
                                        kOwnResult);
  const LaunchResult result =
      RunKernel(Kernel(body, kShared), memory, {to, to}, {.block = {64, 1, 1}});
  EXPECT_EQ(result.fault.message, "");
  const std::vector<uint32_t> values = TestMemory::Values<uint32_t>(to);
  for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(values[i], i ^ 33);
}

TEST(PtxBlock, FindsRaces) {
  const Fault write_read = FaultOf(
      absl::StrCat(kOwnShared, "st.shared.u32 [%r1], %t; ld.shared.u32 %r9, [s];"), 64, kShared);
  EXPECT_EQ(write_read.kind, FaultKind::kUndefined);
  EXPECT_THAT(write_read.message,
              AllOf(HasSubstr("race"), HasSubstr("ld.shared.u32 (line 11)"),
                    HasSubstr("thread 1 reads what thread 0 wrote"), HasSubstr("kernel k")));
  const Fault read_write = FaultOf(
      absl::StrCat(kOwnShared, "ld.shared.u32 %r9, [s+4]; st.shared.u32 [%r1], %t;"), 64, kShared);
  EXPECT_THAT(read_write.message, HasSubstr("race"));
  EXPECT_THAT(FaultOf("st.shared.u32 [s], %t;", 2, kShared).message, HasSubstr("race"));
  EXPECT_EQ(FaultOf("ld.shared.u32 %r1, [s];", 64, kShared).message, "");
  EXPECT_EQ(FaultOf("red.shared.add.u32 [s], 1; bar.sync 0; ld.shared.u32 %r1, [s];", 64, kShared)
                .message,
            "");
  EXPECT_THAT(FaultOf("red.shared.add.u32 [s], 1; ld.shared.u32 %r1, [s];", 64, kShared).message,
              HasSubstr("race"));
  // Shared memory left by one block is no race with the next.
  TestMemory memory;
  const Region to = memory.Allocate(4);
  const std::string body = "setp.ne.u32 %p1, %t, 0; @%p1 ret; st.shared.u32 [s], %t;";
  EXPECT_EQ(
      RunKernel(Kernel(body, kShared), memory, {to, to}, {.grid = {3, 1, 1}, .block = {2, 1, 1}})
          .fault.message,
      "");
  EXPECT_EQ(FaultOf("st.shared.u32 [s], %t;", 2, kShared, {.find_races = false}).message, "");
}

TEST(PtxBlock, WarpBarriersOrderTheirWarpAlone) {
  const std::string body = absl::StrCat(
      kOwnShared, "st.shared.u32 [%r1], %t; bar.warp.sync -1; ld.shared.u32 %r9, [s];");
  EXPECT_EQ(FaultOf(body, 32, kShared).message, "");
  EXPECT_THAT(FaultOf(body, 64, kShared).message, HasSubstr("race"));
}

TEST(PtxBlock, FindsThreadsThatWaitForEver) {
  EXPECT_EQ(FaultOf("setp.eq.u32 %p1, %t, 3; @%p1 ret; bar.sync 0;", 64).message, "");
  EXPECT_THAT(
      FaultOf("setp.eq.u32 %p1, %t, 3; @%p1 bra $b; bar.sync 0; ret; $b: bar.sync 0;", 64).message,
      AllOf(HasSubstr("bar.sync (line 10)"), HasSubstr("different places")));
  EXPECT_THAT(
      FaultOf("setp.lt.u32 %p1, %t, 32; @%p1 bra $b; bar.sync 0; ret; $b: bar.sync 1;", 64).message,
      HasSubstr("another barrier"));
  EXPECT_THAT(
      FaultOf("setp.eq.u32 %p1, %t, 3; @%p1 bra $b; shfl.sync.bfly.b32 %r1, %t, 1, 31, -1; ret;"
              "$b: bar.sync 0;",
              64)
          .message,
      AllOf(HasSubstr("shfl.sync"), HasSubstr("endless wait"), HasSubstr("(3, 0, 0)"),
            HasSubstr("bar.sync")));
  EXPECT_THAT(FaultOf("bar.sync 0, 32;", 64).message, HasSubstr("part of the block"));
}

TEST(PtxBlock, LoopsThatDoNotEndTimeOut) {
  const Fault fault = FaultOf("$l: bra $l;", 1, "", {.branches_max = 1000});
  EXPECT_EQ(fault.kind, FaultKind::kTimeout);
  EXPECT_THAT(fault.message, HasSubstr("launch timed out"));
  EXPECT_EQ(FaultOf("trap;", 1).kind, FaultKind::kTrap);
  const std::atomic<bool> stop = true;
  EXPECT_EQ(FaultOf("$l: bra $l;", 1, "", {.stop = &stop}).kind, FaultKind::kTimeout);
}

TEST(PtxBlock, Shuffles) {
  const std::vector<uint32_t> butterfly =
      OfEachThread("shfl.sync.bfly.b32 %r9, %t, 5, 31, -1;", 64);
  for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(butterfly[i], i ^ 5);
  const std::vector<uint32_t> down =
      OfEachThread("shfl.sync.down.b32 %r9|%p1, %t, 4, 31, -1; @!%p1 mov.u32 %r9, 99;", 32);
  EXPECT_EQ(down[3], 7u);
  EXPECT_EQ(down[28], 99u);
  const std::vector<uint32_t> up = OfEachThread("shfl.sync.up.b32 %r9, %t, 1, 0, -1;", 32);
  EXPECT_EQ(up[0], 0u);
  EXPECT_EQ(up[9], 8u);
  // Segments of eight lanes.
  const std::vector<uint32_t> index = OfEachThread("shfl.sync.idx.b32 %r9, %t, 2, 0x181f, -1;", 32);
  EXPECT_EQ(index[13], 10u);
  EXPECT_THAT(FaultOf("setp.gt.u32 %p1, %t, 3; @%p1 ret; shfl.sync.idx.b32 %r1, %t, 9, 31, 15;", 32)
                  .message,
              HasSubstr("lane 9"));
}

TEST(PtxBlock, VotesAndReductions) {
  EXPECT_THAT(OfEachThread("setp.lt.u32 %p1, %t, 3; vote.sync.ballot.b32 %r9, %p1, -1;", 32),
              Each(7u));
  EXPECT_THAT(OfEachThread("setp.lt.u32 %p1, %t, 3; vote.sync.any.pred %p2, !%p1, -1;"
                           "selp.u32 %r9, 1, 0, %p2;",
                           32),
              Each(1u));
  EXPECT_THAT(OfEachThread("redux.sync.add.u32 %r9, %t, -1;", 32), Each(496u));
  EXPECT_THAT(OfEachThread("setp.lt.u32 %p1, %t, 5; bar.red.popc.u32 %r9, 0, %p1;", 64), Each(5u));
}

TEST(PtxBlock, DivergentHalvesShuffleAmongThemselves) {
  const std::vector<uint32_t> values = OfEachThread(R"(
      setp.lt.u32 %p1, %t, 16; @%p1 bra $low;
      shfl.sync.bfly.b32 %r9, %t, 1, 31, 0xffff0000;
      bra $end;
      $low: shfl.sync.bfly.b32 %r9, %t, 2, 31, 0x0000ffff;
      $end:)",
                                                    32);
  EXPECT_EQ(values[0], 2u);
  EXPECT_EQ(values[16], 17u);
}

TEST(PtxBlock, CallsAndTables) {
  // A function with a local array and a switch, as written by LLVM.
  const std::string function = R"(
.func (.param .b32 func_retval0) twice(.param .b32 twice_param_0)
{
  .local .align 4 .b8 __local_depot0[16];
  .reg .b64 %SP; .reg .b64 %SPL; .reg .b32 %r<5>; .reg .b64 %rd<4>;
  mov.b64 %SPL, __local_depot0;
  cvta.local.u64 %SP, %SPL;
  ld.param.b32 %r1, [twice_param_0];
  st.local.b32 [%SPL+8], %r1;
  ld.b32 %r2, [%SP+8];
  add.s32 %r3, %r1, %r2;
  st.param.b32 [func_retval0], %r3;
  ret;
}
)";
  const std::string body = R"(
  and.b32 %r2, %t, 3;
  $L_brx_0: .branchtargets $L1, $L2, $L1, $L3;
  brx.idx %r2, $L_brx_0;
  $L1: { // callseq 0
    .param .b32 param0; .param .b32 retval0;
    st.param.b32 [param0], %t;
    call.uni (retval0), twice, (param0);
    ld.param.b32 %r9, [retval0];
  }
  bra.uni $end;
  $L2: mov.u32 %r9, 1000;
  bra.uni $end;
  $L3: { .param .b32 param0; .param .b32 retval0;
    st.param.b32 [param0], 5;
    call.uni (retval0), twice, (param0);
    ld.param.b32 %r9, [retval0]; }
  $end: )";
  TestMemory memory;
  const Region to = memory.Allocate(16);
  const LaunchResult result = RunKernel(Kernel(absl::StrCat(body, kOwnResult), function), memory,
                                        {to, to}, {.block = {4, 1, 1}});
  EXPECT_EQ(result.fault.message, "");
  EXPECT_THAT(TestMemory::Values<uint32_t>(to), ElementsAre(0, 1000, 4, 10));
}

TEST(PtxBlock, LaunchesMustFit) {
  TestMemory memory;
  const Region to = memory.Allocate(16);
  const std::string text = Kernel("");
  EXPECT_EQ(RunKernel(text, memory, {to}, {}).fault.kind, FaultKind::kInvalidLaunch);
  EXPECT_EQ(RunKernel(text, memory, {to, to}, {.block = {1025, 1, 1}}).fault.kind,
            FaultKind::kInvalidLaunch);
  EXPECT_EQ(RunKernel(text, memory, {to, to}, {.grid = {0, 1, 1}}).fault.kind,
            FaultKind::kInvalidLaunch);
}

}  // namespace
}  // namespace kiln::stand_ins::ptx
