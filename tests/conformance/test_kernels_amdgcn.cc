#include <cstdio>
#include <cstdlib>
#include <string>

#include "compiler/codegen/testing/ir_text.h"
#include "tests/conformance/test_kernels.h"

namespace kiln::conformance {
namespace {

// In all kernels %at is the address of the block's 32-bit element of the last argument, and %p0 to
// %p2 are the arguments' addresses.

constexpr char kRampIr[] = R"(
  %tripled = mul i32 %i, 3
  %value = add i32 %tripled, 1
  store i32 %value, ptr addrspace(1) %at
)";

constexpr char kSaxpyIr[] = R"(
  %x_at = getelementptr float, ptr addrspace(1) %p0, i32 %i
  %y_at = getelementptr float, ptr addrspace(1) %p1, i32 %i
  %x = load float, ptr addrspace(1) %x_at
  %y = load float, ptr addrspace(1) %y_at
  %doubled = fmul float %x, 2.0
  %sum = fadd float %doubled, %y
  store float %sum, ptr addrspace(1) %at
)";

constexpr char kCountIr[] = R"(
  %old = load i32, ptr addrspace(1) %at
  %new = add i32 %old, 1
  store i32 %new, ptr addrspace(1) %at
)";

// Writes the point to scratch[0], then 1 to 63 to the following words, then reads the point back.
constexpr char kScratchIr[] = R"(
  %own = alloca [64 x i32], align 16, addrspace(5)
  store i32 %i, ptr addrspace(5) %own
  br label %loop
loop:
  %k = phi i32 [ 1, %entry ], [ %k_next, %loop ]
  %word = getelementptr i32, ptr addrspace(5) %own, i32 %k
  store volatile i32 %k, ptr addrspace(5) %word
  %k_next = add i32 %k, 1
  %more = icmp ult i32 %k_next, 64
  br i1 %more, label %loop, label %done
done:
  %back = load volatile i32, ptr addrspace(5) %own
  store i32 %back, ptr addrspace(1) %at
)";

constexpr char kStepIr[] = R"(
  %old = load i32, ptr addrspace(1) %at
  %times = mul i32 %old, 5
  %new = add i32 %times, 7
  store i32 %new, ptr addrspace(1) %at
)";

// Each iteration waits for memory.
constexpr char kSlowIr[] = R"(
  br label %loop
loop:
  %k = phi i32 [ 0, %entry ], [ %k_next, %loop ]
  %old = load volatile i32, ptr addrspace(1) %at
  %k_next = add i32 %k, 1
  %more = icmp ult i32 %k_next, 5000000
  br i1 %more, label %loop, label %done
done:
  %doubled = shl i32 %old, 1
  %new = add i32 %doubled, 1
  store i32 %new, ptr addrspace(1) %at
)";

// Each thread reads what the opposite thread has written to shared memory.
constexpr char kBlocksIr[] = R"(
  %thread = call i32 @llvm.amdgcn.workitem.id.x()
  %first = mul i32 %i, 64
  %number = add i32 %first, %thread
  %from = getelementptr i32, ptr addrspace(1) %p0, i32 %number
  %to = getelementptr i32, ptr addrspace(1) %p1, i32 %number
  %value = load i32, ptr addrspace(1) %from
  %place = getelementptr i32, ptr addrspace(3) @shared, i32 %thread
  store i32 %value, ptr addrspace(3) %place
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  %opposite = sub i32 63, %thread
  %other = getelementptr i32, ptr addrspace(3) @shared, i32 %opposite
  %swapped = load i32, ptr addrspace(3) %other
  store i32 %swapped, ptr addrspace(1) %to
)";

std::string IrOf(int arguments, int block_size, bool by_table, bool runs_parts,
                 const std::string& body) {
  std::string parameters = by_table ? "ptr addrspace(1) %table" : "";
  std::string find;
  for (int i = 0; i < arguments; ++i) {
    const std::string n = std::to_string(i);
    if (!parameters.empty()) parameters += ", ";
    if (!by_table) {
      parameters += "ptr addrspace(1) %p" + n;
      continue;
    }
    parameters += "i64 %packed" + n;
    find += "  %slot" + n + " = lshr i64 %packed" + n + ", " +
            std::to_string(drivers::kSlotOffsetBits) + "\n  %entry" + n +
            " = getelementptr i64, ptr addrspace(1) %table, i64 %slot" + n + "\n  %base" + n +
            " = load ptr addrspace(1), ptr addrspace(1) %entry" + n + "\n  %offset" + n +
            " = and i64 %packed" + n + ", " + std::to_string(drivers::kSlotOffsetMask) + "\n  %p" +
            n + " = getelementptr i8, ptr addrspace(1) %base" + n + ", i64 %offset" + n + "\n";
  }
  if (runs_parts) parameters += ", i64 %first_point";
  const std::string add_first =
      runs_parts
          ? "  %first_low = trunc i64 %first_point to i32\n  %i = add i32 %block, %first_low\n"
          : "  %i = add i32 %block, 0\n";
  const std::string last = std::to_string(arguments - 1);
  const bool shares = body.find("@shared") != std::string::npos;
  return std::string(shares ? "@shared = internal addrspace(3) global [64 x i32] poison, align 64\n"
                            : "") +
         "declare i32 @llvm.amdgcn.workitem.id.x()\ndeclare i32 @llvm.amdgcn.workgroup.id.x()\n"
         "declare void @llvm.amdgcn.s.barrier()\n"
         "define protected amdgpu_kernel void @kernel(" +
         parameters + ") #0 {\nentry:\n  %block = call i32 @llvm.amdgcn.workgroup.id.x()\n" +
         add_first + find + "  %at = getelementptr i32, ptr addrspace(1) %p" + last + ", i32 %i\n" +
         body + "  ret void\n}\nattributes #0 = { nounwind \"amdgpu-flat-work-group-size\"=\"" +
         std::to_string(block_size) + "," + std::to_string(block_size) +
         "\" \"uniform-work-group-size\"=\"true\" \"amdgpu-no-implicitarg-ptr\" "
         "\"amdgpu-no-dispatch-ptr\" \"amdgpu-no-queue-ptr\" \"amdgpu-no-dispatch-id\" "
         "\"amdgpu-no-workgroup-id-y\" \"amdgpu-no-workgroup-id-z\" \"amdgpu-no-workitem-id-y\" "
         "\"amdgpu-no-workitem-id-z\" \"amdgpu-no-lds-kernel-id\" \"amdgpu-no-heap-ptr\" "
         "\"amdgpu-no-hostcall-ptr\" \"amdgpu-no-default-queue\" \"amdgpu-no-completion-action\" "
         "\"amdgpu-no-multigrid-sync-arg\" }\n";
}

drivers::KernelImage MakeAmdgcnImage(const std::string& name, int arguments, int64_t grid,
                                     bool by_table, const std::string& body,
                                     const drivers::Target& target, int block_size = 1) {
  const bool runs_parts = name == "ramp" || name == "count" || name == "blocks";
  auto code = codegen::EmitCodeObjectFromText(
      IrOf(arguments, block_size, by_table, runs_parts, body), target);
  if (!code.ok()) {
    std::fprintf(stderr, "%s: %s\n", name.c_str(), code.status().ToString().c_str());
    std::abort();
  }
  drivers::KernelImage image;
  image.name = name;
  image.architecture = "amdgcn";
  image.code = *std::move(code);
  image.grid_size = grid;
  image.block_size = block_size;
  image.num_arguments = arguments;
  image.takes_slot_table = by_table;
  image.runs_parts = runs_parts;
  return image;
}

}  // namespace

TestKernels MakeAmdgcnKernels(const drivers::Target& target) {
  TestKernels kernels;
  kernels.ramp = MakeAmdgcnImage("ramp", 1, kGrid, false, kRampIr, target);
  kernels.saxpy = MakeAmdgcnImage("saxpy", 3, kGrid, true, kSaxpyIr, target);
  kernels.count = MakeAmdgcnImage("count", 1, kGrid, true, kCountIr, target);
  kernels.scratch = MakeAmdgcnImage("scratch", 1, kGrid, false, kScratchIr, target);
  kernels.step = MakeAmdgcnImage("step", 1, 1, true, kStepIr, target);
  kernels.slow = MakeAmdgcnImage("slow", 1, 1, false, kSlowIr, target);
  kernels.blocks = MakeAmdgcnImage("blocks", 2, kBlocksGrid, true, kBlocksIr, target, kBlockSize);
  kernels.blocks.shared_bytes = kBlockSize * sizeof(int32_t);
  kernels.blocks.access = {drivers::Access::kRead, drivers::Access::kWrite};
  return kernels;
}

}  // namespace kiln::conformance
