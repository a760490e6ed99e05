// A device that accepts kernels only with smaller blocks than it reports: OpenCL's stand-in reports
// 256 threads, and every kernel that it has built takes 128.
#include "absl/time/clock.h"
#include "compiler/graph/text.h"
#include "drivers/opencl/driver.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/runtime/cache/program_compiler.h"

namespace kiln::runtime {
namespace {

// a @ b with a 256 x 256 result, which gets blocks of 256 threads if possible.
class MatmulSource : public GraphSource {
 public:
  const std::string& key() const override { return key_; }
  const std::vector<Variable>& variables() const override { return none_; }
  absl::StatusOr<graph::Graph> Build(const Bindings&, const Grow&, ops::FormSizes*) const override {
    return graph::Parse(R"(input 0 float32[256,512]
input 1 float32[512,256]
%0 = input float32[256,512] index=0
%1 = reshape float32[256,512,1] %0
%2 = expand float32[256,512,256] %1
%3 = input float32[512,256] index=1
%4 = reshape float32[1,512,256] %3
%5 = expand float32[256,512,256] %4
%6 = mul float32[256,512,256] %2 %5
%7 = reduce_sum float32[256,1,256] %6 axes=[1]
output %7
)");
  }

 private:
  const std::string key_ = "matmul";
  const std::vector<Variable> none_;
};

TEST(SmallBlocksTest, AProgramIsCompiledAgainForWhatTheDeviceTakes) {
  std::string why_none;
  auto devices =
      drivers::opencl::OpenClDriver({.library = KILN_OPENCL_STAND_IN}).Enumerate(&why_none);
  ASSERT_TRUE(devices.ok()) << devices.status();
  ASSERT_EQ(devices->size(), 1u) << why_none;
  metrics::Metrics metrics("test");
  ManagedDevice device(std::move(devices->front()), 0, metrics.ForDevice("opencl:0"),
                       SystemClock());
  ASSERT_EQ(device.info().target.limits.threads_per_block, 256);
  std::vector<int> limits;
  ProgramCompiler::Options options;
  options.compile = [&limits](const graph::Graph& graph, const drivers::Target& target,
                              const compiler::Options& options) {
    limits.push_back(target.limits.threads_per_block);
    return compiler::Compile(graph, target, options);
  };
  options.metrics = &metrics;
  options.clock = SystemClock();
  ProgramCompiler compiler(options);
  ProgramRequest request{std::make_shared<MatmulSource>(), {}, &device, "name", Payer(nullptr)};
  request.first_call = std::make_shared<FirstCall>(options.clock.steady, "wait_for_thread");
  const auto program = compiler.Compile(request, *request.Build(), "digest");
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_THAT(limits, ::testing::ElementsAre(256, 128));
  ASSERT_EQ((*program)->compiled().kernels.size(), 1u);
  EXPECT_EQ((*program)->compiled().kernels[0].image.block_size, 128);
}

}  // namespace
}  // namespace kiln::runtime
