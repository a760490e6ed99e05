// Tests of compiled programs:
//   --cpu_features=WORDS    see numerics/target.h
//   --disable_passes=NAMES  see run_compiled.h
//   --device=NAME           cpu, cuda, level_zero or opencl: its first device instead of the
//   processor
#include "tests/numerics/compiled/run_compiled.h"
#include "tests/numerics/target.h"
#include "tests/numerics/test_flags.h"

int main(int argc, char** argv) {
  return kiln::numerics::RunTests(argc, argv,
                                  {{"--cpu_features", kiln::numerics::SetCpuFeatures},
                                   {"--disable_passes", kiln::numerics::DisablePasses},
                                   {"--device", kiln::numerics::UseDevice}});
}
