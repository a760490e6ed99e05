// Compares scatters that threads share on an OpenCL device with the interpreter.
#include "gtest/gtest.h"
#include "tests/numerics/machine_codes/machine_code.h"
#include "tests/numerics/machine_codes/scatter_cases.h"

namespace kiln::numerics {
namespace {

using ir::DType;

class OpenClScattersTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = OpenClC().why_not_run(); !why.empty()) GTEST_SKIP() << why;
  }
};

// Only a few: the device's compiler takes most of a second for a kernel.
TEST_F(OpenClScattersTest, FewDestinations) {
  ExpectScatterRight(FindScatterCase("few_destinations"), "mul", DType::kFloat32, true,
                     On(OpenClC()));
}
TEST_F(OpenClScattersTest, ManyDestinations) {
  ExpectScatterRight(FindScatterCase("many_destinations"), "add", DType::kFloat32, false,
                     On(OpenClC()));
  ExpectScatterRight(FindScatterCase("many_destinations"), "set", DType::kInt8, false,
                     On(OpenClC()));
}
TEST_F(OpenClScattersTest, PiecesOfOneDestination) {
  ExpectScatterRight(FindScatterCase("one_destination"), "add", DType::kFloat32, false,
                     On(OpenClC()));
}
TEST_F(OpenClScattersTest, Runs) {
  ExpectScatterRight(FindScatterCase("runs"), "min", DType::kInt32, false, On(OpenClC()));
}

}  // namespace
}  // namespace kiln::numerics
