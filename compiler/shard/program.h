// A sharded graph as what each device does: its own part of every value, and what devices send each
// other in between.
#ifndef KILN_COMPILER_SHARD_PROGRAM_H_
#define KILN_COMPILER_SHARD_PROGRAM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "compiler/graph/graph.h"

namespace kiln::shard {

// What belongs to no device alone.
inline constexpr int kEach = -1;

// A tensor that one segment writes and others, or other devices, read. Its bytes are a flat array
// in row-major order of its parts.
struct Buffer {
  enum class Kind {
    kInput,      // the graph's input `index`, each device's part
    kPlace,      // the device's place in the mesh, an int64 for each axis
    kOutput,     // the graph's output `index`
    kUpdate,     // the new value of the graph's update `index`
    kOwn,        // between segments, for the device alone
    kPublished,  // between segments, for its group
  };
  Kind kind = Kind::kOwn;
  int index = 0;  // of inputs, outputs and updates
  // Of a graph in stages: the device that has it, by its number. kEach: each has its own.
  int device = kEach;
  int64_t bytes = 0;
  int64_t offset = 0;  // of kOwn and kPublished in their memory
  // The segments that it lives in, both included; of kOwn and kPublished.
  int first = 0;
  int last = 0;
};

// What stands behind an input or output of a segment's graph.
struct Access {
  int buffer = 0;  // index into Program::buffers
  int64_t offset = 0;
  int64_t bytes = 0;
  // As compiler::Argument has them.
  int member = -1;
  int group = 0;
  int64_t stride = 0;
};

// Bytes as they are, from what another device has published to the device's own memory.
struct Fetch {
  Access source;
  Access destination;  // of the same size
};

struct Segment {
  std::vector<Fetch> fetches;  // before the graph, which reads what they bring
  // Ordinary, of local shapes and without a mesh; it has outputs only.
  graph::Graph graph;
  int device = kEach;           // of a graph in stages: the one that runs it
  std::vector<Access> inputs;   // by the graph's input
  std::vector<Access> outputs;  // by the graph's output
};

// No device of the group begins this segment before all of them have ended the one before. The
// number of segments: the program's end.
struct Meeting {
  int segment = 0;
  int group = 0;
};

// A result that is a copy of another buffer's bytes, after all segments.
struct Copy {
  int source = 0;
  int destination = 0;
};

// What devices send each other, for people.
struct Transfer {
  int segment = 0;   // that reads it
  std::string name;  // "all_reduce_sum"
  int group = 0;
  int64_t bytes = 0;  // that each device reads from others
  std::string what;   // "float32[64,10]"
};

struct Program {
  graph::Mesh mesh;
  std::vector<std::vector<int>> groups;  // the mesh's axes, in the order in which devices count
  std::vector<Buffer> buffers;
  std::vector<Segment> segments;
  std::vector<Meeting> meetings;  // in the order of segments
  std::vector<Copy> copies;
  std::vector<Transfer> transfers;
  int64_t own_bytes = 0;  // the most that a device has
  int64_t published_bytes = 0;
  std::string layouts;  // for people: inputs, outputs and updates, what is sharded how
};

// Whether a device has, or runs, what is `device`'s.
inline bool IsOn(int device, int64_t number) { return device == kEach || device == number; }
// Of the memory for kOwn, what this device has.
int64_t OwnBytes(const Program& program, int64_t device);

// Offsets of published buffers and parts are multiples of this, whatever the target.
inline constexpr int64_t kPublishedAlignment = 256;

// For people and golden files; deterministic.
std::string Print(const Program& program);

// INTERNAL if a segment's graph is illegal, an access leaves its buffer, or buffers that live at
// the same time overlap.
absl::Status Verify(const Program& program);

}  // namespace kiln::shard

#endif  // KILN_COMPILER_SHARD_PROGRAM_H_
