// A sharded graph as a program for each device: the device's own part of every value, and the data
// that devices exchange. A graph on one device is the case of one segment.
#ifndef KILN_COMPILER_SHARD_PROGRAM_H_
#define KILN_COMPILER_SHARD_PROGRAM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "compiler/graph/graph.h"

namespace kiln::shard {

// The number of a buffer or segment that every device has.
inline constexpr int kEach = -1;

// A tensor that one segment writes and others, or other devices, read. Its bytes are a flat array
// in row-major order of its parts.
struct Buffer {
  enum class Kind {
    kInput,      // the graph's input `index`, the device's part
    kPlace,      // the device's mesh coordinate, an int64 for each axis
    kOutput,     // the graph's output `index`
    kUpdate,     // the new value of the graph's update `index`
    kOwn,        // between segments, read only by the device itself
    kPublished,  // between segments, read by the device's group
  };
  Kind kind = Kind::kOwn;
  int index = 0;  // for inputs, outputs and updates
  // For a graph in stages: the number of the device that has it. kEach: every device has its own.
  int device = kEach;
  int64_t bytes = 0;
  int64_t offset = 0;  // for kOwn and kPublished, in their memory
  // For kOwn and kPublished: the segments in which it is live, both inclusive.
  int first = 0;
  int last = 0;
};

// The buffer range that an input or output of a segment's graph uses.
struct Access {
  int buffer = 0;  // index into Program::buffers
  int64_t offset = 0;
  int64_t bytes = 0;
  // As in compiler::Argument.
  int member = -1;
  int group = 0;
  int64_t stride = 0;
};

// Copies bytes from another device's published memory to the device's own memory.
struct Fetch {
  Access source;
  Access destination;  // of the same size
};

struct Segment {
  std::vector<Fetch> fetches;  // before the graph, which reads the fetched bytes
  // An ordinary graph of local shapes without a mesh. It has outputs; updates, too, only if it is
  // the whole program of one device.
  graph::Graph graph;
  int device = kEach;           // for a graph in stages: the device that runs it
  std::vector<Access> inputs;   // by the graph's input
  std::vector<Access> results;  // by the graph's output, then by its update
};

// A barrier: no device of the group begins this segment before all of them have finished the
// previous one. The number of segments means the end of the program.
struct Meeting {
  int segment = 0;
  int group = 0;
};

// A result that is a copy of another buffer's bytes, made after all segments.
struct Copy {
  int source = 0;
  int destination = 0;
};

// Data that devices exchange, for display.
struct Transfer {
  int segment = 0;   // the segment that reads it
  std::string name;  // "all_reduce_sum"
  int group = 0;
  int64_t bytes = 0;  // that each device reads from others
  std::string what;   // "float32[64,10]"
};

struct Program {
  graph::Mesh mesh;
  std::vector<std::vector<int>> groups;  // axes of the mesh, in the order in which devices count
  std::vector<Buffer> buffers;
  std::vector<Segment> segments;
  std::vector<Meeting> meetings;  // in the order of segments
  std::vector<Copy> copies;
  std::vector<Transfer> transfers;
  int64_t own_bytes = 0;  // the maximum over the devices
  int64_t published_bytes = 0;
  std::string layouts;  // for display: the layouts of inputs, outputs and updates

  // Checks that each buffer except inputs is written exactly once, as a whole, and that indexes and
  // meetings are in order.
  void Validate() const;
};

// Returns whether device `number` has, or runs, something that belongs to `device`.
inline bool IsOn(int device, int64_t number) { return device == kEach || device == number; }
// Returns how many bytes of memory for kOwn this device needs.
int64_t OwnBytes(const Program& program, int64_t device);

// Offsets of published buffers and parts are multiples of this on every target.
inline constexpr int64_t kPublishedAlignment = 256;

// Returns a deterministic text, for display and golden files.
std::string Print(const Program& program);

// Returns INTERNAL if a segment's graph is illegal, an access is outside its buffer, or buffers
// that are live at the same time overlap.
absl::Status Verify(const Program& program);

}  // namespace kiln::shard

#endif  // KILN_COMPILER_SHARD_PROGRAM_H_
