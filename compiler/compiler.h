// The compiler's public entry: a checked tensor graph and a target in, a program that a driver can
// load out.
#ifndef KILN_COMPILER_COMPILER_H_
#define KILN_COMPILER_COMPILER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "compiler/graph/graph.h"
#include "compiler/workers/kernel_compiler.h"
#include "drivers/interface/kernel_image.h"
#include "drivers/interface/target.h"

namespace kiln::compiler {

// Where compiled kernels are kept between compilations. Thread-safe: kernels compile in parallel.
class KernelCache {
 public:
  virtual ~KernelCache() = default;
  // The bytes stored under this key (any text), if any. Never an error: what cannot be read is not
  // there.
  virtual std::optional<std::string> Get(const std::string& key) = 0;
  virtual void Put(const std::string& key, const std::string& value) = 0;
};

// One executable kernel, and what was decided about it. Several calls may share it.
struct CompiledKernel {
  drivers::KernelImage image;
  std::string digest;    // hexadecimal, of the canonical kernel
  std::string ir;        // kernel::Print
  std::string schedule;  // the directives, as schedule's printer writes them
  // Of a kernel whose schedule was refused, because what it made of the kernel is not the kernel:
  // that schedule, and where they differ. `schedule` is then the plain one. Empty for all others.
  std::string refused_schedule;
  std::string refusal;
  // The scheduled loops as OpenCL C, for people; written when called. Thread-safe.
  std::function<absl::StatusOr<std::string>()> source;
  std::string assembly;  // only with Options::keep_assembly; else Disassemble(image) gives it
  bool from_cache = false;
  double compile_seconds = 0;
};

// A slot of the program: a buffer bound at each run.
struct Slot {
  enum class Kind {
    kInput,   // the graph's input number `index`, read only
    kOutput,  // the graph's output number `index`, written in whole
    kUpdate,  // the new value of update number `index`, written in whole
    kArena,   // intermediate results
    // Of a sharded program:
    kPlace,      // the device's place in the mesh, an int64 for each axis
    kPublished,  // intermediate results that other devices read, laid out alike on every target
  };
  Kind kind = Kind::kInput;
  int index = 0;
  int64_t bytes = 0;
};
struct Argument {
  int slot = 0;
  int64_t offset = 0;  // multiple of the target's buffer_alignment
  int64_t bytes = 0;
  // Of a sharded program: whose buffer it is. -1: the device's own; else that of the device with
  // this number in `group` (an index into CompiledProgram::groups). Others' kPublished alone is
  // read, between two exchanges of that group.
  int member = -1;
  int group = 0;
  // Added to the offset as often as the device's own number in `group` says.
  int64_t stride = 0;
};
struct KernelCall {
  int kernel = 0;  // index into Program::kernels
  std::vector<Argument> arguments;
};

// A part of the time that a pass took.
struct PassPart {
  std::string name;
  double seconds = 0;
};
// What became of one pass (pipeline.h).
struct PassReport {
  std::string pass;
  bool disabled = false;  // it was switched off, and did not run
  double seconds = 0;     // with its verification
  std::string text = {};  // what it left, if it is one of Options::dumped_passes
  // Of those that work at kernels: what its threads did, divided by their number. What is missing
  // to `seconds`, they waited for the slowest.
  std::vector<PassPart> parts = {};
};

// Devices of a mesh that have something to do with each other: those that differ in these axes
// alone. Their numbers in the group count row-major over the axes as they stand here.
struct DeviceGroup {
  std::vector<int> mesh_axes;
};
// No device of a group goes on from here before all of them are here: what one wrote before, the
// others see behind it.
struct Exchange {
  int before_call = 0;  // index into CompiledProgram::calls, or their number; in that order
  int group = 0;        // index into CompiledProgram::groups
};

// A sharded graph's program is the same for all devices of a target: what differs is what stands in
// the slot kPlace.
struct CompiledProgram {
  std::vector<CompiledKernel> kernels;
  std::vector<KernelCall> calls;  // in order; each sees what the ones before it wrote
  std::vector<Slot> slots;  // inputs by index, then outputs, then updates, then the place and what
                            // is published if it is sharded, then the arena; if there are such
  // An output or update that needs no kernel: it is a copy of another slot's bytes (an input
  // returned as it is, or a value that stands twice in the outputs).
  struct Copy {
    Argument source;
    Argument destination;
  };
  std::vector<Copy> copies;         // after the calls
  std::vector<DeviceGroup> groups;  // of a sharded program, like the next
  std::vector<Exchange> exchanges;  // copies come after all of them
  int64_t arena_bytes_without_reuse = 0;
  std::string graph_text;          // the checked graph
  std::string partition_text;      // after partition
  std::vector<PassReport> passes;  // in their order
};

struct Options {
  KernelCache* cache = nullptr;  // may be null
  int threads = 1;               // kernels compiled at once
  // Makes the kernels' images. Null: they are made in this process, which ends where LLVM meets
  // what it cannot compile.
  workers::KernelCompiler* kernel_compiler = nullptr;
  bool keep_assembly = false;
  // Of a graph in stages (graph/stages.h): the device, by its number, whose program is made.
  int stage = 0;
  // Of the passes in pipeline.cc, those that do not run, for debugging: the results are the same.
  // Without "schedule" every kernel is compiled without directives, as one task of serial scalar
  // loops. INVALID_ARGUMENT for a name that is not an optional pass.
  std::vector<std::string> disabled_passes;
  // Those whose outcome is kept as text in their reports. INVALID_ARGUMENT for a name that is none.
  std::vector<std::string> dumped_passes;
  // The clock that times passes and kernels; without it all take no time.
  std::function<absl::Time()> now;
  // Told how many distinct kernels have been found, and how many of all that were found have been
  // made or come from the cache, each time in addition to what it was told before. By any thread.
  // May be null.
  std::function<void(int found, int made)> on_kernels;
  // Check the spec after every pass (cheap; on by default).
  bool verify = true;
};

// INVALID_ARGUMENT if the options name a pass that is none or cannot be switched off.
absl::Status CheckPassNames(const Options& options);

// Thread-safe. INVALID_ARGUMENT: the graph cannot be compiled, and the message names the node;
// UNIMPLEMENTED: the target, or an op or dtype on it, is not supported; INTERNAL: a defect of
// Kiln's.
absl::StatusOr<CompiledProgram> Compile(const graph::Graph& graph, const drivers::Target& target,
                                        const Options& options);

// What a kernel compiler in another process does: the image of one scheduled kernel, with the
// errors of codegen::CompileKernel. Thread-safe.
absl::StatusOr<drivers::KernelImage> CompileJob(const workers::KernelJob& job);

// The scheduled loops of a kernel as OpenCL C, for people; `ir` and `schedule` as
// CompiledKernel has them.
absl::StatusOr<std::string> Source(const std::string& ir, const std::string& schedule);

// The assembly of an image, for people; empty if it has no code.
absl::StatusOr<std::string> Disassemble(const drivers::KernelImage& image,
                                        const drivers::Target& target);

// Names this compiler and its LLVM; part of every cache key.
std::string Version();

}  // namespace kiln::compiler

#endif  // KILN_COMPILER_COMPILER_H_
