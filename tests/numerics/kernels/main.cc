// Tests of kernels:
//   --cpu_features=WORDS    see numerics/target.h
#include "tests/numerics/target.h"
#include "tests/numerics/test_flags.h"

int main(int argc, char** argv) {
  return kiln::numerics::RunTests(argc, argv, {{"--cpu_features", kiln::numerics::SetCpuFeatures}});
}
