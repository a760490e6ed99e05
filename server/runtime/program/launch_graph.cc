#include "server/runtime/program/launch_graph.h"

#include <algorithm>
#include <iterator>
#include <map>

namespace kiln::runtime {
namespace {

// The last writer of each range of a slot's bytes.
class Writers {
 public:
  // Calls `found(writer, bytes)` for each part of [begin, end) that was written.
  template <typename Found>
  void Find(int64_t begin, int64_t end, const Found& found) const {
    auto range = ranges_.upper_bound(begin);
    if (range != ranges_.begin()) --range;
    for (; range != ranges_.end() && range->first < end; ++range) {
      const int64_t bytes = std::min(end, range->second.end) - std::max(begin, range->first);
      if (bytes > 0) found(range->second.writer, bytes);
    }
  }

  void Write(int64_t begin, int64_t end, int writer) {
    if (begin >= end) return;
    Split(begin);
    Split(end);
    ranges_.erase(ranges_.lower_bound(begin), ranges_.lower_bound(end));
    ranges_[begin] = {end, writer};
  }

 private:
  struct Range {
    int64_t end = 0;
    int writer = 0;
  };

  // Makes a range begin at `at` if one has it in its middle.
  void Split(int64_t at) {
    auto range = ranges_.lower_bound(at);
    if (range == ranges_.begin()) return;
    range = std::prev(range);
    if (range->second.end <= at) return;
    ranges_[at] = range->second;
    range->second.end = at;
  }

  std::map<int64_t, Range> ranges_;  // by begin; disjoint
};

bool Reads(const drivers::KernelImage& image, size_t argument) {
  return argument >= image.access.size() || image.access[argument] != drivers::Access::kWrite;
}

// An image that does not say what it writes may write every argument.
bool Writes(const drivers::KernelImage& image, size_t argument) {
  return argument >= image.access.size() || image.access[argument] != drivers::Access::kRead;
}

}  // namespace

std::vector<LaunchEdge> LaunchEdges(const compiler::CompiledProgram& program, size_t launches_max,
                                    size_t edges_max) {
  std::vector<Writers> slots(program.slots.size());
  std::vector<LaunchEdge> edges;
  const size_t launches = std::min(program.calls.size(), launches_max);
  for (size_t i = 0; i < launches; ++i) {
    const compiler::KernelCall& call = program.calls[i];
    const drivers::KernelImage& image = program.kernels[call.kernel].image;
    std::map<int, int64_t> bytes_from;
    for (size_t a = 0; a < call.arguments.size(); ++a) {
      const compiler::Argument& argument = call.arguments[a];
      if (!Reads(image, a)) continue;
      slots[argument.slot].Find(argument.offset, argument.offset + argument.bytes,
                                [&](int writer, int64_t bytes) { bytes_from[writer] += bytes; });
    }
    for (const auto& [from, bytes] : bytes_from) {
      if (edges.size() == edges_max) return edges;
      edges.push_back({from, static_cast<int>(i), bytes});
    }
    for (size_t a = 0; a < call.arguments.size(); ++a) {
      const compiler::Argument& argument = call.arguments[a];
      if (!Writes(image, a) || argument.member >= 0) continue;
      slots[argument.slot].Write(argument.offset, argument.offset + argument.bytes,
                                 static_cast<int>(i));
    }
  }
  return edges;
}

}  // namespace kiln::runtime
