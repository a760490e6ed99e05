// A kernel after its schedule was applied: explicit loops, branches and stores over scalar
// expressions. What the emitters (llvm_emit, c_source) turn into code, one statement after another,
// without deciding anything.
//
// Expressions are kernel-level ir::Nodes over the ranges of the enclosing loops. Two things differ
// from kernel.h:
//  * kLoad's attribute is an index into LoopProgram::buffers, which holds scratch and registers
//    beside the kernel's globals;
//  * kReduce runs only over ranges that are bound to vector lanes: it combines the lanes of its
//    value into one scalar. In a ThreadReduce, the same of threads.
//
// A task is run by one thread, or, where the program has `threads`, by a block of them (the words
// are CUDA's; OpenCL says work-group and work-item). All of a block's threads go through all
// statements:
//  * A loop of kind kThread runs its body once, in those threads that have an iteration.
//  * What a statement outside of such loops writes to registers, every thread writes to its own;
//    what it writes to global or shared memory, the block's first thread writes.
//  * Barriers stand outside of such loops, and so all threads get to them.
// Apply leaves barriers out and has threads combine what they have by ThreadReduce; emitters get
// programs in which there are barriers, and no ThreadReduce but those of neighbours that hand each
// other values (synchronize.h).
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
  kScratch,   // the calling thread's scratch; aligned to 64 bytes
  kRegister,  // a thread's own slots, whose index is constant once the unrolled loops are; each
              // slot holds `lanes` values at once
  kShared,    // memory of the block that runs the task; aligned to 64 bytes
};

struct LoopBuffer {
  std::string name;  // "in0", "out2", "packed1", "sum0": for people
  ir::DType dtype = ir::DType::kInvalid;
  int64_t elements = 0;  // kRegister: slots
  Space space = Space::kGlobal;
  bool read_only = false;
  int lanes = 1;       // kRegister: 1, or the lanes of the vector loop in which it is used
  int64_t offset = 0;  // kScratch, kShared: in bytes, a multiple of 64
};

enum class LoopKind : uint8_t {
  kSerial,
  kUnrolled,  // the body stands once for each iteration
  kVector,  // one pass over the body; the range stands for lanes 0 … extent-1. Vector loops do not
            // nest.
  kThread,  // each iteration in a thread of its own, at once: their order is left open
  kMatrix,  // unrolled, as are the two loops that are all its body. Says what a matrix unit may do
            // in one instruction of 32 threads (plan_matrix.h).
};
std::string_view Name(LoopKind kind);

struct Statement;

struct Loop {
  const ir::Node* range = nullptr;  // kRange; counts from 0
  const ir::Node* extent =
      nullptr;  // serial: int64, how many iterations, if not the range's extent; may be 0
  LoopKind kind = LoopKind::kSerial;
  std::vector<Statement> body;
  // kThread: a thread has the iteration (its number / stride) % places, if there is one of this
  // number. Loops of threads that are nested are digits of the thread's number, the outermost
  // first; `places` of the outermost are all that the block has.
  int64_t stride = 1;
  int64_t places = 1;
  // kSerial: what the body copies to shared memory first, it copies a step before (run_ahead.h).
  bool ahead = false;
};

// `condition` is bool and does not depend on vector lanes.
struct Branch {
  const ir::Node* condition = nullptr;
  std::vector<Statement> then_body;
  std::vector<Statement> else_body;
};

struct Store {
  int buffer = 0;
  const ir::Node* index = nullptr;
  const ir::Node* value = nullptr;
  const ir::Node* valid = nullptr;  // null: always. Where false the old value stays.
  bool streaming = false;  // the written lines are not read again soon: may bypass the caches
  bool async = false;      // what is copied need not be there before the next barrier
};

// In one element, what threads that differ in one digit of their number have of a reduction. Stands
// in loops of threads for the digits before, or in none.
struct ThreadReduce {
  int buffer = 0;  // shared; there is an element for each of the threads from `index` on
  const ir::Node* index = nullptr;
  const ir::Node* value =
      nullptr;         // a kReduce over the digit's range, which is a power of two long
  int64_t stride = 1;  // of the digit, as in Loop
};

// Brings the element's cache line near. The index may lie outside of the buffer; then nothing
// happens.
struct Fetch {
  int buffer = 0;
  const ir::Node* index = nullptr;
};

// What the block's threads have read and written before it, they all have read and written.
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

// By range, the axis of the schedule's plan whose values it takes. Ranges of copies have none.
using RangeAxes = absl::flat_hash_map<const ir::Node*, int>;

struct LoopProgram {
  std::string name;
  std::vector<LoopBuffer> buffers;  // the kernel's globals keep their numbers
  std::vector<Section> sections;    // tasks are numbered through the sections, one after the other
  int num_arguments = 0;
  int threads = 1;  // of the block that runs a task
  int64_t scratch_bytes = 0;
  int64_t shared_bytes = 0;
  RangeAxes axes;
  // Owns the nodes above.
  std::shared_ptr<ir::Context> context;
  int64_t grid_size() const;
};

// Indented pseudo-code, for tests and people.
std::string Print(const LoopProgram& program);

}  // namespace kiln::schedule

#endif  // KILN_COMPILER_SCHEDULE_LOOP_PROGRAM_H_
