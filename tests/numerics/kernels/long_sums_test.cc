// Long sums of equal values, whose rounding errors all have one direction, with schedules of every
// kind. A single chain of additions would exceed the tolerances several times.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "compiler/codegen/codegen.h"
#include "compiler/ir/str_cat.h"
#include "compiler/kernel/testing/interpret.h"
#include "compiler/kernel/text.h"
#include "compiler/machine_codes.h"
#include "compiler/schedule/testing/interpret.h"
#include "tests/numerics/compare.h"
#include "tests/numerics/kernels/kernel_check.h"
#include "tests/numerics/kernels/proved_loops.h"

namespace kiln::codegen {
namespace {

using ops::HostTensor;

constexpr double kTenth = 0.1;
// For chains of up to 256 additions, and of up to 1,024, of 0.1.
constexpr double kFewSums = 4e-6;
constexpr double kManySums = 1.2e-5;
// For tiles of threads.
constexpr double kThreadSums = 2e-5;

// A kernel, its globals, all of them 0.1, and what it computes.
struct LongSum {
  kernel::Kernel kernel;
  std::vector<HostTensor> before;
  std::vector<HostTensor> after;
};

class LongSumsTest : public testing::Test {
 protected:
  void Parse(const std::string& text) {
    const auto kernel = kernel::ParseKernel(text, context_);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    sum_ = {*kernel, {}, {}};
    for (const kernel::Buffer& buffer : kernel->buffers) {
      HostTensor& tensor =
          sum_.before.emplace_back(HostTensor::Zeros(buffer.dtype, {buffer.elements}));
      for (int64_t i = 0; i < tensor.size(); ++i) tensor.SetFloat(i, kTenth);
    }
    sum_.after = sum_.before;
    std::vector<HostTensor*> globals;
    for (HostTensor& tensor : sum_.after) globals.push_back(&tensor);
    const absl::Status status = kernel::Interpret(*kernel, globals);
    ASSERT_TRUE(status.ok()) << status;
  }

  // Compiles and runs it on this machine.
  void ExpectCloseOnHost(const std::string& directives, double tolerance) {
    const auto schedule = schedule::Parse(directives);
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    const auto& target = HostTarget();
    const auto image = CompileKernel(**compiler::FindMachineCode(target.architecture), sum_.kernel,
                                     *schedule, target);
    const absl::Status status =
        CompareWithInterpreter(InterpretedKernel{sum_.before, sum_.after}, image, tolerance);
    EXPECT_TRUE(status.ok()) << status << "\n" << directives;
  }

  // Runs the loops for blocks of threads.
  void ExpectCloseInThreads(const std::string& directives, double tolerance) {
    const auto schedule = schedule::Parse(directives);
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    const auto loops = numerics::ProvedLoops(sum_.kernel, *schedule);
    ASSERT_TRUE(loops.ok()) << loops.status() << "\n" << directives;
    std::vector<HostTensor> actual = sum_.before;
    std::vector<HostTensor*> globals;
    for (HostTensor& tensor : actual) globals.push_back(&tensor);
    const absl::Status status = schedule::Interpret(*loops, globals);
    ASSERT_TRUE(status.ok()) << status << "\n" << schedule::Print(*loops);
    EXPECT_EQ(numerics::Difference(actual.back(), sum_.after.back(), tolerance, tolerance), "")
        << schedule::Print(*loops);
  }

  ir::Context context_;
  LongSum sum_;
};

std::string Sum(int64_t terms) {
  return StrCat("buffer b0 float32[", terms,
                "] read\nbuffer b1 float32[1] write\nstage reduce r0:", terms,
                "\n  b1[0] = sum(b0[r0])\n");
}

// out[i, j] = Σ in0[i, k] * in1[k, j]
std::string Product(int64_t rows, int64_t columns, int64_t terms) {
  return StrCat("buffer b0 float32[", rows * terms, "] read\nbuffer b1 float32[", columns * terms,
                "] read\nbuffer b2 float32[", rows * columns, "] write\nstage r0:", rows,
                " r1:", columns, " reduce r2:", terms, "\n  b2[r0*", columns, " + r1] = sum(b0[r0*",
                terms, " + r2]*b1[r2*", columns, " + r1])\n");
}

TEST_F(LongSumsTest, OfOneAxis) {
  Parse(Sum(100'003));
  for (const char* directives : {
           "",
           "split 0 100\n",
           "split 0 5000\n",
           "split 0 7\nbind 2 unroll\n",
           "split 0 8\npartial 2\nbind 2 unroll\n",
           "split 0 4\nbind 2 vector\n",
           "split 0 8\nbind 2 vector\n",
           "split 0 32\nsplit 2 8\nbind 3 unroll\npartial 3\nbind 4 vector\norder 0 1 3 4\n",
       }) {
    ExpectCloseOnHost(directives, kFewSums);
  }
}

TEST_F(LongSumsTest, OfSeveralAxes) {
  Parse(R"(buffer b0 float32[120900] read
buffer b1 float32[3] write
stage r0:3 reduce r1:31 r2:1300
  b1[r0] = sum(b0[r0*40300 + r1*1300 + r2])
)");
  for (const char* directives : {
           "",
           "order 0 2 1 0\n",
           "order 0 1 0 2\n",
           "fuse 1 2\nsplit 3 8\nbind 5 vector\n",
           "split 2 8\nbind 4 vector\norder 0 0 3 1 4\n",
           "split 1 4\nbind 4 unroll\norder 0 0 2 3 4\n",
       }) {
    ExpectCloseOnHost(directives, kFewSums);
  }
}

// Several sums at once, each of its own terms: the variance's, for example.
TEST_F(LongSumsTest, OfSeveralValues) {
  Parse(R"(buffer b0 float32[50021] read
buffer b1 float32[1] write
stage reduce r0:50021
  b1[0] = sum(b0[r0]*b0[r0]) + sum(b0[r0])*max(b0[r0])
)");
  for (const char* directives : {"", "split 0 8\nbind 2 vector\n"}) {
    ExpectCloseOnHost(directives, kFewSums);
  }
}

TEST_F(LongSumsTest, OfProducts) {
  Parse(Product(5, 9, 20'011));
  for (const char* directives : {
           "",
           "order 0 2 0 1\n",
           "split 2 300\norder 0 3 0 1 4\n",
           "split 2 5000\norder 0 3 0 1 4\n",
           "split 2 300\nsplit 1 8\nbind 6 vector\norder 0 3 0 5 4 6\n",
           "split 2 300\nsplit 1 8\nbind 6 vector\norder 0 3 0 5 4 6\nstage 0 1 3 8 2 1\n",
           "split 2 300\nsplit 1 8\nbind 6 vector\nbind 0 unroll\norder 0 3 5 4 0 6\n"
           "stage 0 1 3 8 2 1\nstage 0 0 3 8 0 2\n",
           "split 1 4\nbind 4 vector\nbind 3 unroll\nbind 0 unroll\norder 0 2 0 3 4\n",
       }) {
    ExpectCloseOnHost(directives, kManySums);
  }
}

TEST_F(LongSumsTest, InThreads) {
  Parse(Sum(70'001));
  for (const char* directives : {
           "split 0 8\nbind 2 thread\n",
           "split 0 64\nsplit 2 8\nbind 3 thread\nbind 4 unroll\npartial 4\norder 0 1 3 4\n",
       }) {
    ExpectCloseInThreads(directives, kFewSums);
  }
}

// Tiles of blocks of threads have longer blocks. Copies to shared memory run ahead within each.
TEST_F(LongSumsTest, InTilesOfThreads) {
  for (const int64_t terms : {9001, 16384}) {
    Parse(Product(8, 8, terms));
    for (const char* ahead : {"", "ahead 11\n"}) {
      ExpectCloseInThreads(StrCat("split 0 8\nsplit 1 8\nsplit 4 2\nsplit 6 4\nsplit 2 8\n"
                                  "bind 3 task\nbind 5 task\nbind 7 thread\nbind 9 thread\n"
                                  "bind 8 unroll\nbind 10 unroll\norder 0 3 5 11 7 9 12 8 10\n"
                                  "stage 0 0 11 1 2 0\nstage 0 1 11 1 2 1\n",
                                  ahead),
                           kThreadSums);
    }
  }
}

}  // namespace
}  // namespace kiln::codegen
