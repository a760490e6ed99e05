// A kernel with its schedule applied: explicit loops, branches and stores over scalar expressions.
// The emitters (codegen/llvm/emit.h, codegen/opencl_c/source.h) translate it statement by
// statement, without decisions.
//
// Expressions are kernel-level ir::Nodes over the ranges of the enclosing loops. They differ from
// kernel.h in two ways:
//  * kLoad's attribute is an index into LoopProgram::buffers, which has scratch and registers in
//    addition to the kernel's globals;
//  * kReduce runs only over ranges bound to vector lanes: it combines the lanes of its value into
//    one scalar. In a ThreadReduce it combines threads in the same way.
//
// A task is run by one thread or, if the program has `threads`, by a block of them (CUDA's terms;
// OpenCL says work-group and work-item). All threads of a block execute all statements:
//  * A loop of kind kThread runs its body once, in the threads that have an iteration.
//  * A statement outside such loops writes registers and scratch in every thread (each has its
//  own),
//    but global and shared memory only in the block's first thread.
//  * Barriers are outside such loops, so all threads reach them.
//
// Apply places no barriers, and combines the threads' values by ThreadReduce. Emitters get programs
// with barriers, in which a ThreadReduce is only over adjacent threads that exchange values without
// memory (threads/synchronize.h).
#ifndef KILN_COMPILER_SCHEDULE_LOOP_PROGRAM_H_
#define KILN_COMPILER_SCHEDULE_LOOP_PROGRAM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/ir/node.h"

namespace kiln::schedule {

enum class Space : uint8_t {
  kGlobal,    // an argument of the kernel
  kScratch,   // scratch of the calling thread; aligned to 64 bytes
  kRegister,  // a thread's own slots; the index is constant once loops are unrolled; each slot
              // holds `lanes` values
  kShared,    // memory of the block that runs the task; aligned to 64 bytes
};
// Returns whether each thread has its own.
inline bool IsPrivate(Space space) { return space == Space::kScratch || space == Space::kRegister; }

struct LoopBuffer {
  std::string name;  // for display: "in0", "out2", "packed1", "sum0"
  ir::DType dtype = ir::DType::kInvalid;
  int64_t elements = 0;  // kRegister: slots
  Space space = Space::kGlobal;
  bool read_only = false;
  int lanes = 1;       // kRegister: 1, or the number of lanes of the vector loop that uses it
  int64_t offset = 0;  // kScratch, kShared: in bytes, a multiple of 64
};

enum class LoopKind : uint8_t {
  kSerial,
  kUnrolled,  // the body is repeated for each iteration
  kVector,  // one pass over the body; the range stands for lanes 0 … extent-1. Vector loops do not
            // nest.
  kThread,  // each iteration in its own thread, all at once; their order is unspecified
  kMatrix,  // unrolled, like the two loops that are its whole body. A matrix unit may execute it as
            // one instruction of 32 threads (matrix/plan.h).
};
std::string_view Name(LoopKind kind);

struct Statement;

struct Loop {
  const ir::Node* range = nullptr;  // kRange; counts from 0
  const ir::Node* extent =
      nullptr;  // serial: int64, the number of iterations if not the extent; may be 0
  LoopKind kind = LoopKind::kSerial;
  std::vector<Statement> body;
  // kThread: a thread has the iteration (its number / stride) % places, if there is one of this
  // number. Nested loops of threads are digits of the thread's number, the outermost first.
  // `places` of the outermost covers all of the block.
  int64_t stride = 1;
  int64_t places = 1;
  // kSerial: copies to shared memory at the start of the body are made one step earlier
  // (threads/run_ahead.h).
  bool ahead = false;
};

// Requires: `condition` is bool and does not depend on vector lanes.
struct Branch {
  const ir::Node* condition = nullptr;
  std::vector<Statement> then_body;
  std::vector<Statement> else_body;
};

struct Store {
  int buffer = 0;
  const ir::Node* index = nullptr;
  const ir::Node* value = nullptr;
  const ir::Node* valid = nullptr;  // null: always. Where it is false, the old value stays.
  bool streaming = false;  // the written lines are not read again soon: may bypass the caches
  bool async = false;      // a copy that need not be complete before the next barrier
};

// Reduces, into one element, the values of threads that differ in one digit of their number. It is
// inside loops of threads for the higher digits, or inside none.
struct ThreadReduce {
  int buffer = 0;  // shared; has an element for each of the threads from `index` on
  const ir::Node* index = nullptr;
  const ir::Node* value =
      nullptr;         // a kReduce over the digit's range, whose extent is a power of two
  int64_t stride = 1;  // of the digit, as in Loop
};

// Prefetches the cache line of an element. Has no effect if the index is outside the buffer.
struct Fetch {
  int buffer = 0;
  const ir::Node* index = nullptr;
};

// After it, every thread of the block sees all reads and writes before it as completed.
struct Barrier {};

struct Statement {
  std::variant<Loop, Branch, Store, ThreadReduce, Fetch, Barrier> node;
};

// Independent tasks: one for each point of the grid, row-major, outermost range first.
struct Section {
  std::vector<const ir::Node*> grid;
  std::vector<Statement> body;
  int64_t tasks() const;
};

// Maps a range to the axis of the schedule's plan whose values it takes. Ranges of copies have
// none.
using RangeAxes = absl::flat_hash_map<const ir::Node*, int>;

struct LoopProgram {
  std::string name;
  std::vector<LoopBuffer> buffers;  // the kernel's globals keep their numbers
  std::vector<Section> sections;    // tasks are numbered through all sections
  int num_arguments = 0;
  int threads = 1;  // in the block that runs a task
  int64_t scratch_bytes = 0;
  int64_t shared_bytes = 0;
  RangeAxes axes;
  // Owns the nodes above.
  std::shared_ptr<ir::Context> context;
  int64_t grid_size() const;

  // Checks that statements name buffers and ranges that exist, that vector loops do not nest, and
  // that offsets are multiples of 64 in order.
  void Validate() const;
};

// Returns indented pseudo-code, for tests and display.
std::string Print(const LoopProgram& program);

}  // namespace kiln::schedule

#endif  // KILN_COMPILER_SCHEDULE_LOOP_PROGRAM_H_
