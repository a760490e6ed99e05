// Selects the OpenCL runtime to test if several are installed.
#ifndef KILN_TESTS_OPENCL_PLATFORM_H_
#define KILN_TESTS_OPENCL_PLATFORM_H_

#include <cstdlib>
#include <string>

namespace kiln {

// Returns $KILN_TEST_OPENCL_PLATFORM, a part of the platform's name; "" if it is not set, which
// means any.
inline std::string OpenClPlatformToTest() {
  const char* name = std::getenv("KILN_TEST_OPENCL_PLATFORM");
  return name == nullptr ? "" : name;
}

}  // namespace kiln

#endif  // KILN_TESTS_OPENCL_PLATFORM_H_
