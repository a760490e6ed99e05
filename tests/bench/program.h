// A graph compiled for a device and ready to run on random inputs, without a daemon.
#ifndef KILN_TESTS_BENCH_PROGRAM_H_
#define KILN_TESTS_BENCH_PROGRAM_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/compiler.h"
#include "drivers/interface/device.h"
#include "kiln/graph.h"

namespace kiln::bench {

// Opens a CPU device that uses this many threads, and the CPU driver's `features` ("avx2"; empty:
// all that the processor has).
absl::StatusOr<std::unique_ptr<drivers::Device>> OpenCpu(int threads,
                                                         const std::string& features = "");
// Opens the first device of a driver: cuda, hsa, level_zero, opencl, or opencl_command_buffers,
// which uses command buffers if the device has them. For OpenCL, a processor only if there is
// nothing else; if there are several platforms, the one to test (tests/opencl_platform.h).
// INVALID_ARGUMENT for another name.
absl::StatusOr<std::unique_ptr<drivers::Device>> OpenDevice(const std::string& driver);

// Not thread-safe. Keeps a reference to the device.
class Program {
 public:
  // Compiles and loads. Inputs are float32 and get values between -1 and 1, the same in every run
  // of the process. The recorded list contains the program's kernels `repeat` times.
  static absl::StatusOr<std::unique_ptr<Program>> Make(drivers::Device& device,
                                                       const absl::StatusOr<Graph>& graph,
                                                       int repeat = 1);
  // The same for a graph that has already been checked.
  static absl::StatusOr<std::unique_ptr<Program>> Make(
      drivers::Device& device, const graph::Graph& graph, int repeat = 1,
      workers::KernelCompiler* kernel_compiler = nullptr);

  // Submits `times` replays one after another and waits for the last.
  absl::Status Run(int times);
  // Replaces the buffers in all slots by others with the same contents, and back the next time.
  absl::Status SwapBuffers();
  // Runs one replay with each kernel call timed; returns the seconds of each call.
  absl::StatusOr<std::vector<double>> RunTimed();

  int kernels() const { return static_cast<int>(compiled_.calls.size()); }
  const compiler::CompiledProgram& compiled() const { return compiled_; }
  // The host memory of a CPU device's input or output.
  float* input(int index) const;
  float* output(int index) const;

 private:
  explicit Program(drivers::Device& device) : device_(device) {}
  absl::Status Load(int repeat);
  // Each call allocates other buffers with the same values.
  absl::Status AllocateSlots();
  int SlotOf(compiler::Slot::Kind kind, int index) const;

  drivers::Device& device_;
  compiler::CompiledProgram compiled_;
  std::vector<std::unique_ptr<drivers::LoadedKernel>> kernels_;
  std::vector<std::unique_ptr<drivers::Buffer>> buffers_;
  std::vector<drivers::Buffer*> slots_;
  std::vector<drivers::Buffer*> other_slots_;
  std::unique_ptr<drivers::PreparedList> list_;
};

}  // namespace kiln::bench

#endif  // KILN_TESTS_BENCH_PROGRAM_H_
