#include "compiler/codegen/opencl_c/source.h"
#include "compiler/codegen/testing/sample_kernels.h"
#include "gtest/gtest.h"

namespace kiln::codegen {
namespace {

using ir::DType;
using ir::Op;

TEST(CSupportedTest, OpsAndDTypes) {
  ir::Context context;
  auto has_source = [&](Op op, DType dtype) {
    KernelWriter w(context);
    const int a = w.In(4, dtype), c = w.Out(4, dtype);
    auto i = w.Range(4);
    w.Stage({i});
    w.Store(c, i, w.Load(a, i).Binary(op, w.Load(a, i)));
    return HasOpenClSource(w.kernel.stages[0].stores[0].value);
  };
  EXPECT_TRUE(has_source(Op::kAdd, DType::kFloat32));
  EXPECT_TRUE(has_source(Op::kAdd, DType::kFloat64));
  EXPECT_FALSE(has_source(Op::kAdd, DType::kFloat16));
  EXPECT_FALSE(has_source(Op::kAdd, DType::kBool));
  EXPECT_FALSE(has_source(Op::kXor, DType::kFloat32));
}

TEST(CSupportedTest, PrivateMemory) {
  schedule::LoopProgram program;
  program.buffers = {{.name = "sum0",
                      .dtype = DType::kFloat32,
                      .elements = 4,
                      .space = schedule::Space::kRegister,
                      .lanes = 16}};
  EXPECT_EQ(CheckOpenClSupported(program), absl::OkStatus());
  program.scratch_bytes = kOpenClPrivateBytesMax - 4 * 16 * 4;
  EXPECT_EQ(CheckOpenClSupported(program), absl::OkStatus());
  program.scratch_bytes += 64;
  EXPECT_EQ(CheckOpenClSupported(program).code(), absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace kiln::codegen
