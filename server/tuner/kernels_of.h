// The kernels of a program, for a search.
#ifndef KILN_SERVER_TUNER_KERNELS_OF_H_
#define KILN_SERVER_TUNER_KERNELS_OF_H_

#include <string>
#include <vector>

#include "server/runtime/device/managed_device.h"
#include "server/runtime/program/program.h"

namespace kiln::tuner {

// A distinct kernel of a program.
struct KernelToTune {
  std::string name;
  std::string text;  // canonical
  runtime::ManagedDevice* device = nullptr;
  double seconds = 0;  // of one launch, as measured in the program; 0: not measured
  int launches = 1;
  std::string owner{};  // the only user of the program; empty: shared
};

// Returns the program's kernels, each once for each kind of device.
std::vector<KernelToTune> KernelsOf(const runtime::Program& program);

// The hardware under which settings of this kernel are stored (StoredHardware).
std::string HardwareOf(const KernelToTune& kernel);

}  // namespace kiln::tuner

#endif  // KILN_SERVER_TUNER_KERNELS_OF_H_
