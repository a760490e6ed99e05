// PTX for each of NVIDIA's processors that drivers/cuda/device_query.cc names.
#include "compiler/kernel/text.h"
#include "gtest/gtest.h"
#include "tests/numerics/cases/thread_cases.h"
#include "tests/numerics/machine_codes/machine_code.h"

namespace kiln::numerics {
namespace {

TEST(PtxProcessorsTest, EachIsKnown) {
  ir::Context context;
  const auto kernel = kernel::ParseKernel(ThreadCases()[0].kernel, context);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  constexpr const char* kAll[][2] = {
      {"sm_75", "+ptx78"},  {"sm_80", "+ptx78"}, {"sm_86", "+ptx78"},  {"sm_87", "+ptx78"},
      {"sm_89", "+ptx78"},  {"sm_90", "+ptx78"}, {"sm_100", "+ptx86"}, {"sm_103", "+ptx88"},
      {"sm_120", "+ptx87"}, {"sm_121", "+ptx88"}};
  for (const auto& [processor, features] : kAll) {
    const drivers::Target target = PtxTarget(processor, features);
    const auto image = CompileForTarget(*kernel, {}, target);
    ASSERT_TRUE(image.ok()) << processor << ": " << image.status();
    EXPECT_EQ(Ptx().what_is_wrong({{*image, target}}), "") << processor;
  }
}

}  // namespace
}  // namespace kiln::numerics
