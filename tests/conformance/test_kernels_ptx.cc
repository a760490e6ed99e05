#include <regex>
#include <string>

#include "tests/conformance/test_kernels.h"

namespace kiln::conformance {
namespace {

constexpr char kPtxHeader[] = ".version 7.8\n.target sm_75\n.address_size 64\n";

// In all kernels %at is the address of the block's 32-bit element of the last argument.

constexpr char kRampPtx[] = R"(
.visible .entry kernel(.param .u64 out) {
  .reg .b64 %at, %offset;
  .reg .b32 %i, %v;
  ld.param.u64 %at, [out];
  mov.u32 %i, %ctaid.x;
  mul.wide.u32 %offset, %i, 4;
  add.s64 %at, %at, %offset;
  mad.lo.s32 %v, %i, 3, 1;
  st.global.u32 [%at], %v;
  ret;
}
)";

constexpr char kSaxpyPtx[] = R"(
.visible .entry kernel(.param .u64 x, .param .u64 y, .param .u64 out) {
  .reg .b64 %x, %y, %at, %offset;
  .reg .b32 %i;
  .reg .f32 %a, %b;
  ld.param.u64 %x, [x];
  ld.param.u64 %y, [y];
  ld.param.u64 %at, [out];
  mov.u32 %i, %ctaid.x;
  mul.wide.u32 %offset, %i, 4;
  add.s64 %x, %x, %offset;
  add.s64 %y, %y, %offset;
  add.s64 %at, %at, %offset;
  ld.global.f32 %a, [%x];
  ld.global.f32 %b, [%y];
  mul.rn.f32 %a, %a, 0f40000000;
  add.rn.f32 %a, %a, %b;
  st.global.f32 [%at], %a;
  ret;
}
)";

constexpr char kCountPtx[] = R"(
.visible .entry kernel(.param .u64 counter) {
  .reg .b64 %at, %offset;
  .reg .b32 %i, %v;
  ld.param.u64 %at, [counter];
  mov.u32 %i, %ctaid.x;
  mul.wide.u32 %offset, %i, 4;
  add.s64 %at, %at, %offset;
  ld.global.u32 %v, [%at];
  add.u32 %v, %v, 1;
  st.global.u32 [%at], %v;
  ret;
}
)";

// Writes the point to scratch[0], then 1 to 63 to the following words, then reads the point back.
constexpr char kScratchPtx[] = R"(
.visible .entry kernel(.param .u64 out) {
  .local .align 8 .b8 scratch[256];
  .reg .b64 %at, %offset, %own;
  .reg .b32 %i, %k, %v;
  .reg .pred %more;
  ld.param.u64 %at, [out];
  mov.u32 %i, %ctaid.x;
  mul.wide.u32 %offset, %i, 4;
  add.s64 %at, %at, %offset;
  mov.u64 %own, scratch;
  st.local.u32 [%own], %i;
  mov.u32 %k, 1;
LOOP:
  add.s64 %own, %own, 4;
  st.local.u32 [%own], %k;
  add.u32 %k, %k, 1;
  setp.lt.u32 %more, %k, 64;
  @%more bra LOOP;
  ld.local.u32 %v, [%own+-252];
  st.global.u32 [%at], %v;
  ret;
}
)";

constexpr char kStepPtx[] = R"(
.visible .entry kernel(.param .u64 value) {
  .reg .b64 %at;
  .reg .b32 %v;
  ld.param.u64 %at, [value];
  ld.global.u32 %v, [%at];
  mad.lo.u32 %v, %v, 5, 7;
  st.global.u32 [%at], %v;
  ret;
}
)";

// Each iteration waits for memory.
constexpr char kSlowPtx[] = R"(
.visible .entry kernel(.param .u64 value) {
  .reg .b64 %at;
  .reg .b32 %v, %k;
  .reg .pred %more;
  ld.param.u64 %at, [value];
  mov.u32 %k, 0;
LOOP:
  ld.volatile.global.u32 %v, [%at];
  add.u32 %k, %k, 1;
  setp.lt.u32 %more, %k, 20000;
  @%more bra LOOP;
  mad.lo.u32 %v, %v, 2, 1;
  st.global.u32 [%at], %v;
  ret;
}
)";

// Each thread reads what the opposite thread has written to shared memory.
constexpr char kBlocksPtx[] = R"(
.visible .entry kernel(.param .u64 in, .param .u64 out) {
  .shared .align 4 .b8 shared[256];
  .reg .b64 %from, %at, %offset;
  .reg .b32 %thread, %i, %v, %place;
  ld.param.u64 %from, [in];
  ld.param.u64 %at, [out];
  mov.u32 %thread, %tid.x;
  mov.u32 %i, %ctaid.x;
  mad.lo.u32 %i, %i, 64, %thread;
  mul.wide.u32 %offset, %i, 4;
  add.s64 %from, %from, %offset;
  add.s64 %at, %at, %offset;
  ld.global.u32 %v, [%from];
  mov.u32 %place, shared;
  mad.lo.u32 %i, %thread, 4, %place;
  st.shared.u32 [%i], %v;
  bar.sync 0;
  sub.u32 %thread, 63, %thread;
  mad.lo.u32 %i, %thread, 4, %place;
  ld.shared.u32 %v, [%i];
  st.global.u32 [%at], %v;
  ret;
}
)";

drivers::KernelImage MakePtxImage(const std::string& name, int arguments, int64_t grid,
                                  const std::string& body) {
  drivers::KernelImage image;
  image.name = name;
  image.architecture = "nvptx64";
  image.code = kPtxHeader + body;
  image.grid_size = grid;
  image.num_arguments = arguments;
  return image;
}

// Returns the kernel with a slot table as a parameter: its other parameters then give the place of
// the address.
drivers::KernelImage PtxTakingTable(drivers::KernelImage image) {
  const std::string find_address =
      "$& shr.u64 %entry, $1, " + std::to_string(drivers::kSlotOffsetBits) +
      "; mad.lo.s64 %entry, %entry, 8, %table; ld.global.nc.u64 %entry, [%entry]; and.b64 $1, "
      "$1, " +
      std::to_string(drivers::kSlotOffsetMask) + "; add.s64 $1, $1, %entry;";
  image.code = std::regex_replace(
      image.code, std::regex("ld\\.param\\.u64 (%[a-z]+), \\[[a-z]+\\];"), find_address);
  image.code = std::regex_replace(image.code, std::regex("kernel\\(([^)]*)\\) \\{"),
                                  "kernel(.param .u64 table, $1) {\n  .reg .b64 %table, %entry;\n"
                                  "  ld.param.u64 %table, [table];");
  image.takes_slot_table = true;
  return image;
}

// Returns the kernel with an additional parameter for the first point, so that parts of its grid
// can run.
drivers::KernelImage PtxRunningParts(drivers::KernelImage image) {
  image.code = std::regex_replace(
      image.code, std::regex("kernel\\(([^)]*)\\) \\{"),
      "kernel($1, .param .u64 first) {\n  .reg .b64 %first;\n  .reg .b32 %first_low;\n"
      "  ld.param.u64 %first, [first];\n  cvt.u32.u64 %first_low, %first;");
  image.code = std::regex_replace(image.code, std::regex("mov\\.u32 %i, %ctaid\\.x;"),
                                  "$&\n  add.u32 %i, %i, %first_low;");
  image.runs_parts = true;
  return image;
}

}  // namespace

TestKernels MakePtxKernels(const drivers::Target& target) {
  TestKernels kernels;
  kernels.ramp = MakePtxImage("ramp", 1, kGrid, kRampPtx);
  kernels.saxpy = MakePtxImage("saxpy", 3, kGrid, kSaxpyPtx);
  kernels.count = MakePtxImage("count", 1, kGrid, kCountPtx);
  kernels.scratch = MakePtxImage("scratch", 1, kGrid, kScratchPtx);
  kernels.step = MakePtxImage("step", 1, 1, kStepPtx);
  kernels.slow = MakePtxImage("slow", 1, 1, kSlowPtx);
  kernels.blocks = MakePtxImage("blocks", 2, kBlocksGrid, kBlocksPtx);
  kernels.blocks.block_size = kBlockSize;
  kernels.blocks.shared_bytes = kBlockSize * sizeof(int32_t);
  kernels.blocks.access = {drivers::Access::kRead, drivers::Access::kWrite};
  // The others take addresses.
  for (drivers::KernelImage* image :
       {&kernels.saxpy, &kernels.count, &kernels.step, &kernels.blocks})
    *image = PtxTakingTable(*image);
  for (drivers::KernelImage* image : {&kernels.ramp, &kernels.count, &kernels.blocks})
    *image = PtxRunningParts(*image);
  return kernels;
}

}  // namespace kiln::conformance
