// Finds the segment in which each value of a local graph can first be computed, and the values that
// later segments recompute.
#ifndef KILN_COMPILER_SHARD_LEVELS_H_
#define KILN_COMPILER_SHARD_LEVELS_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/shard/localize.h"

namespace kiln::shard {

class Levels {
 public:
  explicit Levels(const LocalGraph& local);

  int segments() const { return segments_; }
  // Returns whether it is a value of the local graph.
  bool Has(const ir::Node* node) const { return facts_.contains(node); }
  int Of(const ir::Node* node) const { return facts_.at(node).level; }
  // Returns whether later segments recompute it from its operands.
  bool IsMadeAgain(const ir::Node* node) const { return facts_.at(node).made_again; }
  // The collectives that some result needs, by the level of their operands.
  const std::vector<std::vector<int>>& collectives() const { return collectives_; }
  // Returns the collective whose result the input is, or -1.
  int CollectiveOf(const ir::Node* node) const;

 private:
  struct Facts {
    int level = 0;
    bool made_again = false;
    bool is_source = false;     // depends on no input
    bool is_at_hand = false;    // depends only on the graph's inputs, with little work
    int64_t leaf_elements = 0;  // of the largest stored value that it depends on
    int work = 0;               // elementwise ops between those values and it
  };
  // Checks that no value is before its operands, and that collectives are at their operands' level.
  void Validate() const;
  void Add(const ir::Node* node);
  std::vector<bool> FindUsed() const;

  const LocalGraph& local_;
  int segments_ = 1;
  absl::flat_hash_map<const ir::Node*, Facts> facts_;
  std::vector<std::vector<int>> collectives_;
};

}  // namespace kiln::shard

#endif  // KILN_COMPILER_SHARD_LEVELS_H_
