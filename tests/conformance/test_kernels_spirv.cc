#include <cstdio>
#include <cstdlib>
#include <string>

#include "compiler/codegen/testing/ir_text.h"
#include "tests/conformance/test_kernels.h"

namespace kiln::conformance {
namespace {

enum class Takes { kAddresses, kTable };

// Returns a kernel around `body`, LLVM IR that uses the group's number as %i, the thread's as
// %thread and the arguments as %p0 to %p2, and falls through at its end.
std::string SpirvKernel(int arguments, Takes takes, bool runs_parts, const std::string& body) {
  std::string text = R"(
@shared = internal addrspace(3) global [64 x i32] poison, align 4
declare spir_func i64 @_Z12get_group_idj(i32)
declare spir_func i64 @_Z12get_local_idj(i32)
declare spir_func void @_Z22__spirv_ControlBarrieriii(i32, i32, i32) convergent
define spir_kernel void @kernel()";
  if (takes == Takes::kTable) text += "ptr addrspace(1) %table, ";
  const std::string kind = takes == Takes::kTable ? "i64 %a" : "ptr addrspace(1) %p";
  for (int i = 0; i < arguments; ++i) text += (i > 0 ? ", " : "") + kind + std::to_string(i);
  if (runs_parts) text += ", i64 %first";
  text += R"() {
entry:
  %group = call spir_func i64 @_Z12get_group_idj(i32 0)
  %i = add i64 %group, )" +
          std::string(runs_parts ? "%first" : "0") + R"(
  %thread = call spir_func i64 @_Z12get_local_idj(i32 0)
)";
  for (int i = 0; i < arguments && takes == Takes::kTable; ++i) {
    const std::string n = std::to_string(i);
    text += "  %slot" + n + " = lshr i64 %a" + n + ", " + std::to_string(drivers::kSlotOffsetBits) +
            "\n  %entry" + n + " = getelementptr i64, ptr addrspace(1) %table, i64 %slot" + n +
            "\n  %base" + n + " = load i64, ptr addrspace(1) %entry" + n + "\n  %offset" + n +
            " = and i64 %a" + n + ", " + std::to_string(drivers::kSlotOffsetMask) + "\n  %sum" + n +
            " = add i64 %base" + n + ", %offset" + n + "\n  %p" + n + " = inttoptr i64 %sum" + n +
            " to ptr addrspace(1)\n";
  }
  return text + body + "  ret void\n}\n";
}

constexpr char kRampSpirv[] = R"(
  %tripled = mul i64 %i, 3
  %more = add i64 %tripled, 1
  %value = trunc i64 %more to i32
  %at = getelementptr i32, ptr addrspace(1) %p0, i64 %i
  store i32 %value, ptr addrspace(1) %at
)";

constexpr char kSaxpySpirv[] = R"(
  %x_at = getelementptr float, ptr addrspace(1) %p0, i64 %i
  %y_at = getelementptr float, ptr addrspace(1) %p1, i64 %i
  %at = getelementptr float, ptr addrspace(1) %p2, i64 %i
  %x = load float, ptr addrspace(1) %x_at
  %y = load float, ptr addrspace(1) %y_at
  %doubled = fmul float %x, 2.0
  %both = fadd float %doubled, %y
  store float %both, ptr addrspace(1) %at
)";

constexpr char kCountSpirv[] = R"(
  %at = getelementptr i32, ptr addrspace(1) %p0, i64 %i
  %old = load i32, ptr addrspace(1) %at
  %new = add i32 %old, 1
  store i32 %new, ptr addrspace(1) %at
)";

// Writes the point to scratch[0], then 1 to 63 to the following words, then reads the point back.
constexpr char kScratchSpirv[] = R"(
  %scratch = alloca [64 x i64], align 8
  store volatile i64 %i, ptr %scratch
  br label %inner
inner:
  %k = phi i64 [ 1, %entry ], [ %k_next, %inner ]
  %k_at = getelementptr i64, ptr %scratch, i64 %k
  store volatile i64 %k, ptr %k_at
  %k_next = add i64 %k, 1
  %again = icmp slt i64 %k_next, 64
  br i1 %again, label %inner, label %after
after:
  %kept = load volatile i64, ptr %scratch
  %value = trunc i64 %kept to i32
  %at = getelementptr i32, ptr addrspace(1) %p0, i64 %i
  store i32 %value, ptr addrspace(1) %at
)";

constexpr char kStepSpirv[] = R"(
  %old = load i32, ptr addrspace(1) %p0
  %scaled = mul i32 %old, 5
  %new = add i32 %scaled, 7
  store i32 %new, ptr addrspace(1) %p0
)";

constexpr char kSlowSpirv[] = R"(
  %own = alloca i64, align 8
  br label %inner
inner:
  %k = phi i64 [ 0, %entry ], [ %k_next, %inner ]
  store volatile i64 %k, ptr %own
  %k_next = add i64 %k, 1
  %again = icmp slt i64 %k_next, 3000000
  br i1 %again, label %inner, label %after
after:
  %old = load i32, ptr addrspace(1) %p0
  %doubled = mul i32 %old, 2
  %new = add i32 %doubled, 1
  store i32 %new, ptr addrspace(1) %p0
)";

// Each thread reads what the opposite thread has written to shared memory.
constexpr char kBlocksSpirv[] = R"(
  %begin = mul i64 %i, 64
  %number = add i64 %begin, %thread
  %from = getelementptr i32, ptr addrspace(1) %p0, i64 %number
  %value = load i32, ptr addrspace(1) %from
  %own = getelementptr i32, ptr addrspace(3) @shared, i64 %thread
  store i32 %value, ptr addrspace(3) %own
  call spir_func void @_Z22__spirv_ControlBarrieriii(i32 2, i32 2, i32 784) convergent
  %opposite = sub i64 63, %thread
  %other = getelementptr i32, ptr addrspace(3) @shared, i64 %opposite
  %taken = load i32, ptr addrspace(3) %other
  %at = getelementptr i32, ptr addrspace(1) %p1, i64 %number
  store i32 %taken, ptr addrspace(1) %at
)";

drivers::KernelImage MakeSpirvImage(const drivers::Target& target, const std::string& name,
                                    int arguments, int64_t grid, Takes takes,
                                    const std::string& body) {
  const bool runs_parts = name == "ramp" || name == "count" || name == "blocks";
  auto words = codegen::EmitSpirvFromText(SpirvKernel(arguments, takes, runs_parts, body), target);
  if (!words.ok()) {
    fprintf(stderr, "cannot compile the test kernel %s: %s\n", name.c_str(),
            words.status().ToString().c_str());
    abort();
  }
  drivers::KernelImage image;
  image.name = name;
  image.architecture = target.architecture;
  image.code = *std::move(words);
  image.grid_size = grid;
  image.num_arguments = arguments;
  image.takes_slot_table = takes == Takes::kTable;
  image.runs_parts = runs_parts;
  return image;
}

}  // namespace

TestKernels MakeSpirvKernels(const drivers::Target& target) {
  TestKernels kernels;
  kernels.ramp = MakeSpirvImage(target, "ramp", 1, kGrid, Takes::kAddresses, kRampSpirv);
  kernels.saxpy = MakeSpirvImage(target, "saxpy", 3, kGrid, Takes::kTable, kSaxpySpirv);
  kernels.count = MakeSpirvImage(target, "count", 1, kGrid, Takes::kTable, kCountSpirv);
  kernels.scratch = MakeSpirvImage(target, "scratch", 1, kGrid, Takes::kAddresses, kScratchSpirv);
  kernels.step = MakeSpirvImage(target, "step", 1, 1, Takes::kTable, kStepSpirv);
  kernels.slow = MakeSpirvImage(target, "slow", 1, 1, Takes::kAddresses, kSlowSpirv);
  kernels.blocks = MakeSpirvImage(target, "blocks", 2, kBlocksGrid, Takes::kTable, kBlocksSpirv);
  kernels.blocks.block_size = kBlockSize;
  kernels.blocks.shared_bytes = kBlockSize * sizeof(int32_t);
  kernels.blocks.access = {drivers::Access::kRead, drivers::Access::kWrite};
  return kernels;
}

}  // namespace kiln::conformance
