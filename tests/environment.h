// Numbers from environment variables, for longer searches and larger amounts in manual runs.
#ifndef KILN_TESTS_ENVIRONMENT_H_
#define KILN_TESTS_ENVIRONMENT_H_

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/numbers.h"

namespace kiln {

// Returns `otherwise` if the variable is not set. Ends the program if its value is not a number of
// at least zero: a test that silently tries nothing would pass.
inline int64_t NumberFromEnvironment(const char* variable, int64_t otherwise) {
  const char* text = std::getenv(variable);
  if (text == nullptr) return otherwise;
  int64_t number = 0;
  if (!absl::SimpleAtoi(text, &number) || number < 0) {
    std::fprintf(stderr, "%s=%s: a number of at least 0 is wanted\n", variable, text);
    std::exit(1);
  }
  return number;
}

}  // namespace kiln

#endif  // KILN_TESTS_ENVIRONMENT_H_
