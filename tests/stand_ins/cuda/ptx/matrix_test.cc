// Tests of mma.sync against a plain product, with fragments filled by the tables of the PTX ISA.
#include <bit>

#include "tests/stand_ins/cuda/ptx/float_format.h"
#include "tests/stand_ins/cuda/ptx/testing/run.h"

namespace kiln::stand_ins::ptx {
namespace {

// Small integers, so that every sum is exact.
double A(int row, int column) { return (row * 5 + column * 3) % 11 - 5; }
double B(int row, int column) { return (row * 7 + column * 2) % 13 - 6; }
double C(int row, int column) { return row - column; }

uint32_t Two(Type type, double low, double high) {
  return static_cast<uint32_t>(FromDouble(type, high) << 16 | FromDouble(type, low));
}
uint32_t Single(double value) { return std::bit_cast<uint32_t>(static_cast<float>(value)); }

void ExpectProduct(const std::vector<float>& results, int depth) {
  for (int lane = 0; lane < 32; ++lane) {
    for (int e = 0; e < 4; ++e) {
      const int row = lane / 4 + (e < 2 ? 0 : 8);
      const int column = lane % 4 * 2 + e % 2;
      double expected = C(row, column);
      for (int k = 0; k < depth; ++k) expected += A(row, k) * B(k, column);
      ASSERT_EQ(results[lane * 4 + e], expected) << row << ", " << column;
    }
  }
}

// The registers of each lane, one after another: A's, B's, C's.
std::vector<float> Product(const std::string& instruction, int a, int b,
                           const std::vector<uint32_t>& fragments) {
  const auto list = [](char letter, int first, int count) {
    std::string text = "{";
    for (int i = 0; i < count; ++i)
      absl::StrAppend(&text, i > 0 ? ", %" : "%", std::string(1, letter), first + i);
    return text + "}";
  };
  std::string body =
      absl::StrCat("mul.wide.u32 %d1, %t, ", (a + b + 4) * 4, "; add.u64 %d1, %d1, %in;\n");
  for (int i = 0; i < a + b; ++i)
    absl::StrAppend(&body, "ld.global.b32 %r", i, ", [%d1+", 4 * i, "];\n");
  for (int i = 0; i < 4; ++i)
    absl::StrAppend(&body, "ld.global.f32 %f", i, ", [%d1+", 4 * (a + b + i), "];\n");
  absl::StrAppend(&body, instruction, " ", list('f', 4, 4), ", ", list('r', 0, a), ", ",
                  list('r', a, b), ", ", list('f', 0, 4), ";\n",
                  "mul.wide.u32 %d2, %t, 16; add.u64 %d2, %d2, %out;\n", "st.global.v4.f32 [%d2], ",
                  list('f', 4, 4), ";\n");
  TestMemory memory;
  const Region in = memory.Hold(fragments);
  const Region out = memory.Allocate(32 * 16);
  EXPECT_EQ(RunKernel(Kernel(body), memory, {in, out}, {.block = {32, 1, 1}}).fault.message, "");
  return TestMemory::Values<float>(out);
}

void AddSums(std::vector<uint32_t>& fragments, int group, int in_group) {
  for (int e = 0; e < 4; ++e)
    fragments.push_back(Single(C(group + (e < 2 ? 0 : 8), in_group * 2 + e % 2)));
}

TEST(PtxMatrix, ShortFloats) {
  for (Type type : {Type::kF16, Type::kBf16}) {
    std::vector<uint32_t> k16;
    std::vector<uint32_t> k8;
    for (int lane = 0; lane < 32; ++lane) {
      const int g = lane / 4;
      const int c = lane % 4 * 2;
      for (int r = 0; r < 4; ++r) {
        const int row = r % 2 == 0 ? g : g + 8;
        const int column = r < 2 ? c : c + 8;
        k16.push_back(Two(type, A(row, column), A(row, column + 1)));
      }
      k8.push_back(Two(type, A(g, c), A(g, c + 1)));
      k8.push_back(Two(type, A(g + 8, c), A(g + 8, c + 1)));
      k16.push_back(Two(type, B(c, g), B(c + 1, g)));
      k16.push_back(Two(type, B(c + 8, g), B(c + 9, g)));
      k8.push_back(Two(type, B(c, g), B(c + 1, g)));
      AddSums(k16, g, lane % 4);
      AddSums(k8, g, lane % 4);
    }
    const std::string types =
        type == Type::kF16 ? ".row.col.f32.f16.f16.f32" : ".row.col.f32.bf16.bf16.f32";
    ExpectProduct(Product("mma.sync.aligned.m16n8k16" + types, 4, 2, k16), 16);
    ExpectProduct(Product("mma.sync.aligned.m16n8k8" + types, 2, 1, k8), 8);
  }
}

TEST(PtxMatrix, Tf32) {
  std::vector<uint32_t> k8;
  std::vector<uint32_t> k4;
  for (int lane = 0; lane < 32; ++lane) {
    const int g = lane / 4;
    const int c = lane % 4;
    for (int r = 0; r < 4; ++r) k8.push_back(Single(A(r % 2 == 0 ? g : g + 8, r < 2 ? c : c + 4)));
    k8.push_back(Single(B(c, g)));
    k8.push_back(Single(B(c + 4, g)));
    k4.push_back(Single(A(g, c)));
    k4.push_back(Single(A(g + 8, c)));
    k4.push_back(Single(B(c, g)));
    AddSums(k8, g, c);
    AddSums(k4, g, c);
  }
  const std::string types = ".row.col.f32.tf32.tf32.f32";
  ExpectProduct(Product("mma.sync.aligned.m16n8k8" + types, 4, 2, k8), 8);
  ExpectProduct(Product("mma.sync.aligned.m16n8k4" + types, 2, 1, k4), 4);
}

TEST(PtxMatrix, NeedsTheWholeWarp) {
  TestMemory memory;
  const Region to = memory.Allocate(4);
  const std::string body =
      "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2}, {%r3},"
      "{%f1, %f2, %f3, %f4};";
  EXPECT_THAT(RunKernel(Kernel(body), memory, {to, to}, {.block = {16, 1, 1}}).fault.message,
              testing::HasSubstr("32 threads"));
}

TEST(PtxMatrix, LoadsMatrices) {
  std::vector<uint16_t> matrices(4 * 64);
  for (size_t i = 0; i < matrices.size(); ++i) matrices[i] = static_cast<uint16_t>(i);
  for (const bool transposed : {false, true}) {
    // Lane l copies 16 bytes, row l % 8 of matrix l / 8, and holds its address.
    const std::string body = absl::StrCat(
        "shl.b32 %r1, %t, 4; cvt.u64.u32 %d1, %r1; add.u64 %d2, %in, %d1; mov.u64 %d3, s;"
        "add.u64 %d3, %d3, %d1; ld.global.v2.u64 {%d4, %d5}, [%d2];"
        "st.shared.v2.u64 [%d3], {%d4, %d5}; bar.sync 0;"
        "ldmatrix.sync.aligned.m8n8.x4",
        transposed ? ".trans" : "",
        ".shared.b16 {%r2, %r3, %r4, %r5}, [%d3];"
        "add.u64 %d2, %out, %d1; st.global.v4.u32 [%d2], {%r2, %r3, %r4, %r5};");
    TestMemory memory;
    const Region in = memory.Hold(matrices);
    const Region out = memory.Allocate(512);
    const LaunchResult result = RunKernel(Kernel(body, ".shared .align 16 .b8 s[512];\n"), memory,
                                          {in, out}, {.block = {32, 1, 1}});
    ASSERT_EQ(result.fault.message, "");
    const std::vector<uint32_t> values = TestMemory::Values<uint32_t>(out);
    for (uint32_t lane = 0; lane < 32; ++lane) {
      for (uint32_t matrix = 0; matrix < 4; ++matrix) {
        const uint32_t row = lane / 4;
        const uint32_t column = lane % 4 * 2;
        const uint32_t low = matrix * 64 + (transposed ? column * 8 + row : row * 8 + column);
        const uint32_t high = low + (transposed ? 8 : 1);
        ASSERT_EQ(values[lane * 4 + matrix], high << 16 | low) << lane << ", " << matrix;
      }
    }
  }
}

}  // namespace
}  // namespace kiln::stand_ins::ptx
