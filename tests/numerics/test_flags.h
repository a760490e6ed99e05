// GoogleTest's main with flags of our own, each of which sets what all tests of the process
// compile.
#ifndef KILN_TESTS_NUMERICS_TEST_FLAGS_H_
#define KILN_TESTS_NUMERICS_TEST_FLAGS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace kiln::numerics {

struct TestFlag {
  std::string name;  // "--cpu_features"
  // FAILED_PRECONDITION: this machine cannot, and the tests are skipped.
  std::function<absl::Status(const std::string& value)> set;
};

// Runs the tests with the flags NAME=VALUE of the command line set. --list_cpu_features prints the
// words that this machine can execute, and does nothing else. Returns the process' status: 77, by
// which CTest tells that a program was skipped, where no test ran to its end.
int RunTests(int argc, char** argv, const std::vector<TestFlag>& flags);

}  // namespace kiln::numerics

#endif  // KILN_TESTS_NUMERICS_TEST_FLAGS_H_
