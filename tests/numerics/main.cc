// GoogleTest's main with two flags of our own:
//   --cpu_features=WORDS    see target.h
//   --list_cpu_features     prints the words that this machine can execute, and does nothing else
#include <cstdio>
#include <cstring>

#include "drivers/cpu/instructions.h"
#include "gtest/gtest.h"
#include "tests/numerics/target.h"

namespace {

constexpr int kSkipped = 77;  // ctest's SKIP_RETURN_CODE

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  constexpr char kFeatures[] = "--cpu_features=";
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--list_cpu_features") == 0) {
      for (const std::string& words : kiln::drivers::cpu::ExecutableFeatures())
        std::printf("%s\n", words.c_str());
      return 0;
    }
    if (std::strncmp(argv[i], kFeatures, std::strlen(kFeatures)) != 0) {
      std::fprintf(stderr, "unknown argument %s\n", argv[i]);
      return 2;
    }
    const absl::Status status = kiln::numerics::SetCpuFeatures(argv[i] + std::strlen(kFeatures));
    if (status.ok()) continue;
    std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
    return absl::IsFailedPrecondition(status) ? kSkipped : 2;
  }
  return RUN_ALL_TESTS();
}
