// Tests on an OpenCL device; skipped where there is none.
#include <cstdio>

#include "tests/numerics/run_opencl.h"
#include "tests/numerics/test_flags.h"

int main(int argc, char** argv) {
  constexpr int kSkipped = 77;  // ctest's SKIP_RETURN_CODE
  if (!kiln::numerics::OpenCl().ok()) {
    std::printf("skipped: %s\n", kiln::numerics::OpenCl().status().ToString().c_str());
    return kSkipped;
  }
  std::printf("on %s\n", (*kiln::numerics::OpenCl())->DeviceName().c_str());
  return kiln::numerics::RunTests(argc, argv, {});
}
