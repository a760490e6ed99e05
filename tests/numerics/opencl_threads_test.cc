// Blocks of threads on an OpenCL device, against the interpreter.
#include <string>
#include <vector>

#include "compiler/kernel/testing/interpret.h"
#include "compiler/kernel/text.h"
#include "gtest/gtest.h"
#include "tests/numerics/compare.h"
#include "tests/numerics/run_opencl.h"
#include "tests/numerics/thread_cases.h"

namespace kiln::numerics {
namespace {

using ops::HostTensor;

class OpenClThreadsTest : public testing::TestWithParam<ThreadCase> {};

TEST_P(OpenClThreadsTest, EqualsTheKernel) {
  ir::Context context;
  const auto kernel = kernel::ParseKernel(GetParam().kernel, context);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  std::vector<HostTensor> expected = GlobalsOf(*kernel);
  std::vector<HostTensor*> pointers;
  for (HostTensor& tensor : expected) pointers.push_back(&tensor);
  ASSERT_EQ(kernel::Interpret(*kernel, pointers), absl::OkStatus());
  for (const std::string& directives : GetParam().schedules) {
    SCOPED_TRACE(directives);
    const auto schedule = schedule::Parse(directives);
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    std::vector<HostTensor> actual = GlobalsOf(*kernel);
    std::vector<HostTensor*> run;
    for (HostTensor& tensor : actual) run.push_back(&tensor);
    ASSERT_EQ(RunOnOpenCl(*kernel, *schedule, run), absl::OkStatus());
    for (size_t i = 0; i < actual.size(); ++i) {
      EXPECT_EQ(Difference(actual[i], expected[i], GetParam().tolerance, GetParam().tolerance), "")
          << "buffer " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, OpenClThreadsTest, testing::ValuesIn(ThreadCases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace kiln::numerics
