#include "tests/numerics/test_flags.h"

#include <cstdio>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "drivers/cpu/instructions.h"
#include "gtest/gtest.h"

namespace kiln::numerics {
namespace {

constexpr int kSkipped = 77;  // ctest's SKIP_RETURN_CODE

absl::Status Set(const std::string& word, const std::vector<TestFlag>& flags) {
  for (const TestFlag& flag : flags) {
    const std::string begin = absl::StrCat(flag.name, "=");
    if (absl::StartsWith(word, begin)) return flag.set(word.substr(begin.size()));
  }
  return absl::InvalidArgumentError(absl::StrCat("unknown argument ", word));
}

}  // namespace

int RunTests(int argc, char** argv, const std::vector<TestFlag>& flags) {
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--list_cpu_features") {
      for (const std::string& words : drivers::cpu::ExecutableFeatures()) {
        std::printf("%s\n", words.c_str());
      }
      return 0;
    }
    const absl::Status status = Set(word, flags);
    if (status.ok()) continue;
    std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
    return absl::IsFailedPrecondition(status) ? kSkipped : 2;
  }
  const int failed = RUN_ALL_TESTS();
  const testing::UnitTest& tests = *testing::UnitTest::GetInstance();
  const bool ran = tests.test_to_run_count() > tests.skipped_test_count();
  return failed != 0 || ran || GTEST_FLAG_GET(list_tests) ? failed : kSkipped;
}

}  // namespace kiln::numerics
