// Tests of state spaces, bounds, alignment, atomics and asynchronous copies.
#include "tests/stand_ins/cuda/ptx/testing/run.h"

namespace kiln::stand_ins::ptx {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

Fault FaultOf(const std::string& body, const std::string& before = "",
              const LaunchShape& shape = {}) {
  TestMemory memory;
  const Region in = memory.Hold(std::vector<uint32_t>{1, 2, 3, 4});
  return RunKernel(Kernel(body, before), memory, {in, in}, shape).fault;
}

TEST(PtxMemory, EveryAccessLiesInAnAllocation) {
  const Fault beyond = FaultOf("ld.global.u32 %r1, [%in+16];");
  EXPECT_EQ(beyond.kind, FaultKind::kIllegalAddress);
  EXPECT_THAT(beyond.message,
              AllOf(HasSubstr("ld.global.u32 (line 10)"), HasSubstr("0 bytes past the end"),
                    HasSubstr("16 bytes at"), HasSubstr("thread (0, 0, 0)")));
  EXPECT_EQ(FaultOf("mov.u64 %d1, 64; st.u32 [%d1], %r1;").kind, FaultKind::kIllegalAddress);
  EXPECT_EQ(FaultOf("ld.global.v2.u64 {%d1, %d2}, [%in];").message, "");
  EXPECT_EQ(FaultOf("ld.global.u32 %r1, [%in+2];").kind, FaultKind::kMisalignedAddress);
  EXPECT_EQ(FaultOf("ld.global.v2.u32 {%r1, %r2}, [%in+4];").kind, FaultKind::kMisalignedAddress);
  EXPECT_EQ(FaultOf("st.shared.u32 [s+8], %r1;", ".shared .align 4 .b8 s[8];").kind,
            FaultKind::kIllegalAddress);
  EXPECT_EQ(FaultOf(".local .b32 l[2]; st.local.u32 [l+4], %r1; ld.local.u32 %r1, [l+8];").kind,
            FaultKind::kIllegalAddress);
  EXPECT_EQ(FaultOf("cvta.to.shared.u64 %d1, %in;").kind, FaultKind::kUndefined);
}

TEST(PtxMemory, WidthsAndSigns) {
  const auto widened = [](const std::string& load) {
    return Evaluate<uint64_t>(absl::StrCat(load, " st.global.u64 [%out], %d1;"),
                              std::vector<uint32_t>{0x818283f4, 5})[0];
  };
  EXPECT_EQ(widened("ld.global.s8 %d1, [%in];"), 0xfffffffffffffff4u);
  EXPECT_EQ(widened("ld.global.nc.u8 %d1, [%in+1];"), 0x83u);
  EXPECT_EQ(widened("ld.volatile.global.s16 %d1, [%in];"), 0xffffffffffff83f4u);
  EXPECT_EQ(widened("ld.global.L1::evict_last.s32 %d1, [%in];"), 0xffffffff818283f4u);
  EXPECT_EQ(widened("ld.global.v2.u32 {%r1, %r2}, [%in]; mov.b64 %d1, {%r2, %r1};"),
            0x818283f400000005u);
  EXPECT_EQ(widened("ld.global.u64 %d1, [%in]; mov.b64 {%r1, _}, %d1; cvt.u64.u32 %d1, %r1;"),
            0x818283f4u);
}

TEST(PtxMemory, GenericAddressesAndVariables) {
  const std::string variables = R"(
.const .align 4 .b8 table[8] = {1, 0, 0, 0, 2, 0, 0, 0};
.global .align 4 .u32 counter = 40;
.global .align 8 .u64 pointers[1] = {table+4};
.shared .align 8 .b8 s[16];
.extern .shared .align 16 .b8 dynamic[];
)";
  TestMemory memory;
  const Region to = memory.Allocate(16);
  const LaunchResult result = RunKernel(Kernel(R"(
      mov.u64 %d1, pointers; ld.global.u64 %d2, [%d1]; ld.u32 %r1, [%d2];
      ld.const.u32 %r2, [table];
      ld.global.u32 %r3, [counter]; add.u32 %r3, %r3, 2; st.global.u32 [counter], %r3;
      mov.u64 %d3, s; cvta.shared.u64 %d3, %d3; st.u32 [%d3+4], %r3; ld.shared.u32 %r4, [s+4];
      isspacep.shared %p1, %d3; selp.u32 %r5, 1, 0, %p1;
      isspacep.global %p1, %in; @!%p1 mov.u32 %r5, 9;
      mov.u64 %d4, dynamic; st.shared.u32 [%d4+12], %r5;
      st.global.v4.u32 [%out], {%r1, %r2, %r4, %r5};)",
                                               variables),
                                        memory, {to, to}, {.dynamic_shared_bytes = 16});
  EXPECT_EQ(result.fault.message, "");
  EXPECT_THAT(TestMemory::Values<uint32_t>(to), ElementsAre(2, 1, 42, 1));
}

TEST(PtxMemory, Atomics) {
  TestMemory memory;
  const Region in = memory.Hold(std::vector<uint32_t>{0, 10, 0x3f800000, 7, 0xffffffff, 3});
  const LaunchResult result = RunKernel(Kernel(R"(
      atom.global.add.u32 %r1, [%in], 2;
      red.relaxed.gpu.global.max.s32 [%in+4], %t;
      atom.global.add.f32 %f1, [%in+8], 0f3F800000;
      atom.global.cas.b32 %r2, [%in+12], 7, 8;
      atom.min.u32 %r3, [%in+16], %t;
      atom.global.inc.u32 %r4, [%in+20], 3;)"),
                                        memory, {in, in}, {.block = {40, 1, 1}});
  EXPECT_EQ(result.fault.message, "");
  EXPECT_THAT(TestMemory::Values<uint32_t>(in), ElementsAre(80, 39, 0x42240000, 8, 0, 3));
}

constexpr char kCopy[] =
    "mov.u32 %r1, s; mul.wide.u32 %d1, %t, 4; cvt.u32.u64 %r2, %d1; add.u32 %r1, %r1, %r2;"
    "add.u64 %d2, %in, %d1; cp.async.ca.shared.global [%r1], [%d2], 4; ";

Fault Copying(const std::string& then, std::vector<uint32_t>* values = nullptr) {
  TestMemory memory;
  const Region in = memory.Hold(std::vector<uint32_t>{5, 6, 7, 8});
  const Region out = memory.Allocate(16);
  const std::string body =
      absl::StrCat(kCopy, then,
                   "xor.b32 %r3, %t, 1; shl.b32 %r3, %r3, 2; mov.u32 %r4, s; add.u32 %r4, %r4, %r3;"
                   "ld.shared.u32 %r5, [%r4]; add.u64 %d2, %out, %d1; st.global.u32 [%d2], %r5;");
  const LaunchResult result = RunKernel(Kernel(body, ".shared .align 16 .b8 s[16];\n"), memory,
                                        {in, out}, {.block = {4, 1, 1}});
  if (values != nullptr) *values = TestMemory::Values<uint32_t>(out);
  return result.fault;
}

TEST(PtxMemory, AsynchronousCopiesEndWhenTheyAreWaitedFor) {
  std::vector<uint32_t> values;
  EXPECT_EQ(Copying("cp.async.commit_group; cp.async.wait_group 0; bar.sync 0;", &values).message,
            "");
  EXPECT_THAT(values, ElementsAre(6, 5, 8, 7));
  EXPECT_EQ(Copying("cp.async.wait_all; bar.sync 0;").message, "");
  EXPECT_THAT(Copying("cp.async.commit_group; bar.sync 0;").message, HasSubstr("cp.async"));
  EXPECT_THAT(Copying("cp.async.commit_group; cp.async.wait_group 1; bar.sync 0;").message,
              HasSubstr("still being filled"));
  EXPECT_THAT(Copying("cp.async.wait_all;").message, HasSubstr("race"));
  EXPECT_THAT(Copying("cp.async.wait_group 0; bar.sync 0;").message,
              HasSubstr("still being filled"));
}

TEST(PtxMemory, NotesWhatALaunchTouches) {
  TestMemory memory;
  const Region in = memory.Allocate(64);
  const Region out = memory.Allocate(64);
  const LaunchResult result =
      RunKernel(Kernel("mul.wide.u32 %d1, %t, 4; add.u64 %d2, %in, %d1; ld.global.u32 %r1, [%d2+8];"
                       "add.u64 %d2, %out, %d1; st.global.u32 [%d2], %r1;"),
                memory, {in, out}, {.block = {4, 1, 1}}, {.note_accesses = true});
  ASSERT_EQ(result.reads.size(), 1u);
  EXPECT_EQ(result.reads[0].begin, in.address + 8);
  EXPECT_EQ(result.reads[0].end, in.address + 24);
  ASSERT_EQ(result.writes.size(), 1u);
  EXPECT_EQ(result.writes[0].begin, out.address);
  EXPECT_EQ(result.writes[0].end, out.address + 16);
}

// An instruction that reads two buffers does not read the bytes between them.
TEST(PtxMemory, TellsApartWhatOneInstructionTouches) {
  TestMemory memory;
  const Region in = memory.Allocate(1024);
  const Region out = memory.Allocate(64);
  const LaunchResult result = RunKernel(
      Kernel("mul.wide.u32 %d1, %t, 256; add.u64 %d2, %in, %d1; ld.global.u32 %r1, [%d2];"
             "mul.wide.u32 %d1, %t, 4; add.u64 %d2, %out, %d1; st.global.u32 [%d2], %r1;"),
      memory, {in, out}, {.block = {2, 1, 1}}, {.note_accesses = true});
  ASSERT_EQ(result.reads.size(), 2u);
  EXPECT_EQ(result.reads[0].end, in.address + 4);
  EXPECT_EQ(result.reads[1].begin, in.address + 256);
}

}  // namespace
}  // namespace kiln::stand_ins::ptx
