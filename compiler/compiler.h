// The compiler's public entry point: compiles a checked tensor graph for a target to a program that
// a driver can load.
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
#include "compiler/kernel/in_place.h"
#include "compiler/workers/kernel_compiler.h"
#include "drivers/interface/kernel_image.h"
#include "drivers/interface/target.h"

namespace kiln::compiler {

// Stores compiled kernels between compilations. Thread-safe, since kernels compile in parallel.
class KernelCache {
 public:
  virtual ~KernelCache() = default;
  // Returns the bytes stored under this key (any text), if any. Never fails: an entry that cannot
  // be read counts as missing.
  virtual std::optional<std::string> Get(const std::string& key) = 0;
  virtual void Put(const std::string& key, const std::string& value) = 0;
};

// One executable kernel, and the decisions about it. Several calls may share it.
struct CompiledKernel {
  drivers::KernelImage image;
  std::string digest;    // hexadecimal, of the canonical kernel
  std::string ir;        // kernel::Print
  std::string schedule;  // the directives, as schedule's printer writes them
  // If the proof refused a kernel's schedule because it changes the result: that schedule, and the
  // difference. `schedule` is then the plain one. Empty for all others.
  std::string refused_schedule;
  std::string refusal;
  // The setting that Options::tuned returned for the kernel; empty if it returned none.
  std::string setting;
  // Why `setting` could not be used, so that the schedule is the heuristic's; empty if it was used.
  std::string setting_refusal;
  // The knobs of `setting` that were not used because this version does not have them, or not for
  // this kernel, with reasons; the heuristic chose the values of others instead.
  std::string setting_ignored;
  // Which of its arguments may be the same buffer.
  std::vector<kernel::InPlace> in_place;
  // Returns the scheduled loops as OpenCL C, for people; written when called. Thread-safe.
  std::function<absl::StatusOr<std::string>()> source;
  std::string assembly;  // only with Options::keep_assembly; otherwise use Disassemble(image)
  bool from_cache = false;
  double compile_seconds = 0;
};

// A slot of the program: a buffer that each run binds.
struct Slot {
  enum class Kind {
    kInput,   // the graph's input number `index`, read only
    kOutput,  // the graph's output number `index`, fully written
    kUpdate,  // the new value of update number `index`, fully written
    kArena,   // intermediate results
    // For sharded programs:
    kPlace,  // the device's coordinates in the mesh, an int64 per axis
    // Intermediate results that other devices read, laid out identically on every target.
    kPublished,
  };
  Kind kind = Kind::kInput;
  int index = 0;
  int64_t bytes = 0;
};
struct Argument {
  int slot = 0;
  int64_t offset = 0;  // multiple of the target's buffer_alignment
  int64_t bytes = 0;
  // For sharded programs: the owner of the buffer. -1: this device; otherwise the device with this
  // number in `group` (an index into CompiledProgram::groups). Of other devices only kPublished is
  // read, between two exchanges of that group.
  int member = -1;
  int group = 0;
  // Multiplied by the device's own number in `group` and added to the offset.
  int64_t stride = 0;
};
struct KernelCall {
  int kernel = 0;  // index into CompiledProgram::kernels
  std::vector<Argument> arguments;
  // By argument: the number of the value (partition::NumberedValues) in the graph of the call's
  // part of the program; -1: it is no value. With other choices the values have the same numbers.
  std::vector<int> values = {};
};

// The choices about which values of a graph share a kernel (partition/choices/choices.h). A graph
// on a mesh has several parts, each with its own.
struct GraphChoices {
  std::string key;   // partition::GraphKey of the part; empty if Options::choices is null
  std::string text;  // what Options::choices returned; empty if it returned nothing
  // Why `text` could not be used, so that the partitioner has decided alone; empty if it was used.
  std::string refusal;
};

// A part of the time that a pass took.
struct PassPart {
  std::string name;
  double seconds = 0;
};
// The report of one pass (pipeline.h).
struct PassReport {
  std::string pass;
  bool disabled = false;                 // it was disabled and did not run
  absl::Time start = absl::UnixEpoch();  // by Options::now
  double seconds = 0;                    // includes its verification
  std::string text = {};                 // its result, if it is one of Options::dumped_passes
  // For passes that process kernels: the work of its threads, divided by their number. The
  // difference to `seconds` is the time spent waiting for the slowest thread.
  std::vector<PassPart> parts = {};
};

// Devices of a mesh that communicate: those that differ only in these axes. Their numbers in the
// group are row-major over the axes in this order.
struct DeviceGroup {
  std::vector<int> mesh_axes;
};
// A barrier of a group's devices: each waits here until all have arrived. After it every device
// sees what the others wrote before it.
struct Exchange {
  int before_call = 0;  // index into CompiledProgram::calls, or their number; in that order
  int group = 0;        // index into CompiledProgram::groups
};

// A sharded graph's program is the same for all devices of one target; only the content of the slot
// kPlace differs.
struct CompiledProgram {
  std::vector<CompiledKernel> kernels;
  std::vector<KernelCall> calls;  // in order; each sees the writes of the calls before it
  std::vector<Slot> slots;  // inputs by index, then outputs, then updates, then (if sharded) the
                            // place and published results, then the arena; each only if it exists
  // An output or update that needs no kernel: a copy of another slot's bytes (an input returned
  // unchanged, or a value that occurs twice in the outputs).
  struct Copy {
    Argument source;
    Argument destination;
  };
  std::vector<Copy> copies;  // after the calls
  // The updates that may be written into the buffer of the input that they replace. Such a run
  // *commits*: it writes over its inputs only from the call `commit` on. Each of them is read only
  // before and at the place where it is replaced. `commit` is the number of calls if there are
  // none.
  std::vector<int> updates_in_place;  // numbers of updates, ascending
  int commit = 0;
  std::vector<DeviceGroup> groups;  // for sharded programs, like the next
  std::vector<Exchange> exchanges;  // copies come after all of them
  int64_t arena_bytes_without_reuse = 0;
  std::string graph_text;             // the checked graph
  std::string partition_text;         // after partition
  std::vector<GraphChoices> choices;  // of each part that has kernels
  std::vector<PassReport> passes;     // in their order
};

struct Options {
  KernelCache* cache = nullptr;  // may be null
  int threads = 1;               // number of kernels compiled in parallel
  // Makes the kernels' images. Null: they are made in this process, which LLVM ends if it cannot
  // compile a kernel.
  workers::KernelCompiler* kernel_compiler = nullptr;
  bool keep_assembly = false;
  // Returns the setting that was measured to be the fastest for a kernel on a target, as text
  // (search/knobs/setting.h); nullopt if none is known. The kernel is canonical: kernel::Print, as
  // in CompiledKernel::ir. Its schedule is then made from the setting, and proved like any other.
  // If that is not possible, the heuristic decides, as it does for all kernels if this is null. The
  // text may be untrusted. Called on any thread, several times at once.
  std::function<std::optional<std::string>(const std::string& kernel,
                                           const drivers::Target& target)>
      tuned;
  // Returns the choices for a part of a program on a target, as text (partition/choices/choices.h);
  // nullopt if none are known. The part is named by partition::GraphKey. If the text cannot be
  // used, the partitioner decides alone, as it does for all parts if this is null. The text may be
  // untrusted. Called on any thread, several times at once.
  std::function<std::optional<std::string>(const std::string& graph, const drivers::Target& target)>
      choices;
  // For a graph in stages (graph/stages.h): the number of the device whose program is made.
  int stage = 0;
  // Passes of pipeline.cc that are skipped, for debugging: the results are the same. Without
  // "schedule" every kernel is compiled without directives, as one task of serial scalar loops.
  // INVALID_ARGUMENT for a name that is not an optional pass.
  std::vector<std::string> disabled_passes;
  // Passes whose results are kept as text in their reports. INVALID_ARGUMENT for an unknown name.
  std::vector<std::string> dumped_passes;
  // The clock that times passes and kernels; without it all times are 0.
  std::function<absl::Time()> now;
  // Called with the increase in the number of distinct kernels found, and in the number of these
  // that were compiled or read from the cache. Called on any thread. May be null.
  std::function<void(int found, int made)> on_kernels;
  // Check the spec after every pass (cheap; on by default).
  bool verify = true;
};

// Returns INVALID_ARGUMENT if the options name an unknown pass, or disable one that is not
// optional.
absl::Status CheckPassNames(const Options& options);

// Thread-safe. INVALID_ARGUMENT: the graph cannot be compiled; the message names the node.
// UNIMPLEMENTED: the target, or an op or dtype on it, is not supported. INTERNAL: a defect of Kiln.
absl::StatusOr<CompiledProgram> Compile(const graph::Graph& graph, const drivers::Target& target,
                                        const Options& options);

// Executes a job in a compile worker: returns the image of one scheduled kernel, with the errors of
// codegen::CompileKernel. Thread-safe.
absl::StatusOr<drivers::KernelImage> CompileJob(const workers::KernelJob& job);

// Returns the scheduled loops of a kernel as OpenCL C, for people; `ir` and `schedule` are those of
// a CompiledKernel.
absl::StatusOr<std::string> Source(const std::string& ir, const std::string& schedule);

// Returns the assembly of an image, for people; empty if it has no code.
absl::StatusOr<std::string> Disassemble(const drivers::KernelImage& image,
                                        const drivers::Target& target);

// Identifies this compiler and its LLVM; part of every cache key.
std::string Version();

}  // namespace kiln::compiler

#endif  // KILN_COMPILER_COMPILER_H_
