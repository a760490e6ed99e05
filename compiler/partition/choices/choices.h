// Decisions about the kernels of a graph that are not the partitioner's own: those that were
// measured to be faster.
//
// Text:
//
//   choices 1
//   apart %57
//   recompute %12
//
// A value is named by its number in the text of the graph that the partitioner gets (graph::Print).
// So choices belong to one graph, which GraphKey names. They are stored for years: the number in
// the first line is kChoicesVersion, which grows if the format or the meaning of a choice changes.
// A choice that cannot be made is ignored, and the partitioner's own decision holds.
#ifndef KILN_COMPILER_PARTITION_CHOICES_CHOICES_H_
#define KILN_COMPILER_PARTITION_CHOICES_CHOICES_H_

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"
#include "compiler/ir/node.h"

namespace kiln::partition {

inline constexpr int kChoicesVersion = 1;
inline constexpr size_t kChoicesMax = 4096;

// About one value. Neighbours exclude each other: the first and the second, and so on.
enum class Choice : uint8_t {
  kApart,      // it begins a kernel, and joins none
  kJoin,       // it joins a kernel that it reads from, although that may leave too few tasks
  kKeep,       // a contraction's epilogue stays in its kernel
  kSplit,      // a contraction's epilogue is another kernel
  kRecompute,  // each reader computes it
  kStore,      // it is stored, and readers read it
};
std::string_view Name(Choice choice);
// Returns the one that excludes this one.
Choice Opposite(Choice choice);

struct Choices {
  // Numbers of values, with what was chosen. No two exclude each other.
  std::set<std::pair<int64_t, Choice>> values;

  bool empty() const { return values.empty(); }
  bool operator==(const Choices&) const = default;
};

// Without choices, the first line.
std::string Print(const Choices& choices);
// INVALID_ARGUMENT, "line N: …", if the text is not choices of this version. Safe for untrusted
// text.
absl::StatusOr<Choices> ParseChoices(std::string_view text);

// Returns the canonical name of a graph: a line with its digest.
std::string GraphKey(const graph::Graph& graph);

// Returns the values of a graph in the order of their numbers.
std::vector<const ir::Node*> NumberedValues(const graph::Graph& graph);

// Choices with the values that they are about.
class ChosenValues {
 public:
  ChosenValues() = default;
  // Numbers that the graph does not have are ignored.
  ChosenValues(const Choices& choices, const graph::Graph& graph);

  bool Has(const ir::Node* node, Choice choice) const;
  bool empty() const { return chosen_.empty(); }

 private:
  absl::flat_hash_map<const ir::Node*, uint8_t> chosen_;  // a bit for each choice
};

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_CHOICES_CHOICES_H_
