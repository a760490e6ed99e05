// The kernels of a program, for a search.
#ifndef KILN_SERVER_TUNER_KERNELS_OF_H_
#define KILN_SERVER_TUNER_KERNELS_OF_H_

#include <optional>
#include <string>
#include <vector>

#include "compiler/compiler.h"
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

// A program whose choices (partition/choices/choices.h) can be searched for.
struct GraphToTune {
  std::string graph;      // text, as it was compiled
  std::string key;        // partition::GraphKey
  std::string choices{};  // with which it was compiled, as text; empty: without
  runtime::ManagedDevice* device = nullptr;
  std::string owner{};  // as of KernelToTune
};

// Returns the program's graph; nullopt if it runs on several devices.
std::optional<GraphToTune> GraphOf(const runtime::Program& program);

// Returns the kernels of a program that was compiled for the device of `graph`. The times of those
// that `known` has not are guesses from their sizes.
std::vector<KernelToTune> KernelsOf(const compiler::CompiledProgram& program,
                                    const GraphToTune& graph,
                                    const std::vector<KernelToTune>& known);

// Returns a kernel's expected time by its size, in any unit; 0 if it is none.
double SizeOf(const KernelToTune& kernel);

// Returns the program's kernels, each once for each kind of device.
std::vector<KernelToTune> KernelsOf(const runtime::Program& program);

// The hardware under which settings of this kernel are stored (StoredHardware).
std::string HardwareOf(const KernelToTune& kernel);

}  // namespace kiln::tuner

#endif  // KILN_SERVER_TUNER_KERNELS_OF_H_
