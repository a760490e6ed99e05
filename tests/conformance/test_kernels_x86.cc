#include <cstdio>
#include <cstdlib>
#include <string>

#include "compiler/codegen/testing/ir_text.h"
#include "tests/conformance/test_kernels.h"

namespace kiln::conformance {
namespace {

// Returns a loop over the grid points [%begin, %end) around `body`, LLVM IR that uses the point as
// %i and falls through at its end. %p0 to %p2 are the arguments.
std::string Kernel(const std::string& name, int arguments, const std::string& body) {
  std::string text =
      "define void @" + name + R"((ptr %arguments, i64 %begin, i64 %end, ptr %scratch) {
entry:
)";
  for (int i = 0; i < arguments; ++i) {
    const std::string number = std::to_string(i);
    text += "  %slot" + number + " = getelementptr ptr, ptr %arguments, i64 " + number + "\n";
    text += "  %p" + number + " = load ptr, ptr %slot" + number + "\n";
  }
  text += R"(  br label %loop
loop:
  %i = phi i64 [ %begin, %entry ], [ %i_next, %next ]
  %more = icmp slt i64 %i, %end
  br i1 %more, label %body, label %done
body:
)" + body +
          R"(  br label %next
next:
  %i_next = add i64 %i, 1
  br label %loop
done:
  ret void
}
)";
  return text;
}

constexpr char kRamp[] = R"(
  %tripled = mul i64 %i, 3
  %sum = add i64 %tripled, 1
  %value = trunc i64 %sum to i32
  %at = getelementptr i32, ptr %p0, i64 %i
  store i32 %value, ptr %at
)";

constexpr char kSaxpy[] = R"(
  %x_at = getelementptr float, ptr %p0, i64 %i
  %y_at = getelementptr float, ptr %p1, i64 %i
  %at = getelementptr float, ptr %p2, i64 %i
  %x = load float, ptr %x_at
  %y = load float, ptr %y_at
  %doubled = fmul float %x, 2.0
  %sum = fadd float %doubled, %y
  store float %sum, ptr %at
)";

constexpr char kCount[] = R"(
  %at = getelementptr i32, ptr %p0, i64 %i
  %old = load i32, ptr %at
  %new = add i32 %old, 1
  store i32 %new, ptr %at
)";

// Writes the point to scratch[0], then 1 to 63 to the following words, then reads the point back.
constexpr char kScratch[] = R"(
  store volatile i64 %i, ptr %scratch
  br label %inner
inner:
  %k = phi i64 [ 1, %body ], [ %k_next, %inner ]
  %k_at = getelementptr i64, ptr %scratch, i64 %k
  store volatile i64 %k, ptr %k_at
  %k_next = add i64 %k, 1
  %again = icmp slt i64 %k_next, 64
  br i1 %again, label %inner, label %after
after:
  %kept = load volatile i64, ptr %scratch
  %value = trunc i64 %kept to i32
  %at = getelementptr i32, ptr %p0, i64 %i
  store i32 %value, ptr %at
)";

constexpr char kStep[] = R"(
  %old = load i32, ptr %p0
  %scaled = mul i32 %old, 5
  %new = add i32 %scaled, 7
  store i32 %new, ptr %p0
)";

constexpr char kSlow[] = R"(
  br label %inner
inner:
  %k = phi i64 [ 0, %body ], [ %k_next, %inner ]
  store volatile i64 %k, ptr %scratch
  %k_next = add i64 %k, 1
  %again = icmp slt i64 %k_next, 3000000
  br i1 %again, label %inner, label %after
after:
  %old = load i32, ptr %p0
  %doubled = mul i32 %old, 2
  %new = add i32 %doubled, 1
  store i32 %new, ptr %p0
)";

drivers::KernelImage Make(const drivers::Target& target, const std::string& name, int arguments,
                          int64_t grid, const std::string& body) {
  auto blob = codegen::EmitBlobFromText(Kernel(name, arguments, body), target, name);
  if (!blob.ok()) {
    fprintf(stderr, "cannot compile the test kernel %s: %s\n", name.c_str(),
            blob.status().ToString().c_str());
    abort();
  }
  drivers::KernelImage image;
  image.name = name;
  image.architecture = target.architecture;
  image.code = blob->code;
  image.entry = blob->entry;
  image.grid_size = grid;
  image.num_arguments = arguments;
  image.runs_parts = true;
  return image;
}

}  // namespace

TestKernels MakeX86Kernels(const drivers::Target& target) {
  TestKernels kernels;
  kernels.ramp = Make(target, "ramp", 1, kGrid, kRamp);
  kernels.saxpy = Make(target, "saxpy", 3, kGrid, kSaxpy);
  kernels.count = Make(target, "count", 1, kGrid, kCount);
  kernels.scratch = Make(target, "scratch", 1, kGrid, kScratch);
  kernels.scratch.scratch_bytes = 64 * sizeof(int64_t);
  kernels.step = Make(target, "step", 1, 1, kStep);
  kernels.slow = Make(target, "slow", 1, 1, kSlow);
  kernels.slow.scratch_bytes = 64;
  for (drivers::KernelImage* image :
       {&kernels.ramp, &kernels.saxpy, &kernels.count, &kernels.scratch}) {
    image->flops = int64_t{1} << 30;
  }
  return kernels;
}

}  // namespace kiln::conformance
