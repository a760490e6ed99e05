// GoogleTest's main with additional flags, each of which changes what all tests of the process
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
  // FAILED_PRECONDITION: this machine does not support it, and the tests are skipped.
  std::function<absl::Status(const std::string& value)> set;
};

// Sets the flags NAME=VALUE of the command line and runs the tests. --list_cpu_features only prints
// the words that this machine can execute. Returns the process' status: 77, which CTest interprets
// as skipped, if no test was completed.
int RunTests(int argc, char** argv, const std::vector<TestFlag>& flags);

}  // namespace kiln::numerics

#endif  // KILN_TESTS_NUMERICS_TEST_FLAGS_H_
