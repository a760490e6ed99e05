// Checks that CTest runs the compiled cases without each of the optional passes.
#include "absl/strings/str_split.h"
#include "compiler/pipeline.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/numerics/compiled/run_compiled.h"

namespace kiln::numerics {
namespace {

TEST(Passes, EachOptionalOneIsSwitchedOffInATest) {
  std::vector<std::string> optional;
  for (const compiler::Pass& pass : compiler::Passes()) {
    if (pass.optional) optional.emplace_back(pass.name);
  }
  const std::vector<std::string> tested = absl::StrSplit(KILN_PASSES_SWITCHED_OFF, ',');
  EXPECT_EQ(tested, optional) << "the list is in tests/numerics/CMakeLists.txt";
}

TEST(Passes, OthersCannotBe) {
  EXPECT_THAT(DisablePasses("emit").message(), testing::HasSubstr("cannot switch off"));
  EXPECT_THAT(DisablePasses("simplify,frobnicate").message(), testing::HasSubstr("unknown pass"));
}

}  // namespace
}  // namespace kiln::numerics
