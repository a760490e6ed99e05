// Points at the edge of a condition by which a schedule skips terms (directives/skip.h): where the
// condition just holds, or just fails, and all others hold. There a bound that is off by one shows.
#ifndef KILN_COMPILER_PROOF_EDGES_H_
#define KILN_COMPILER_PROOF_EDGES_H_

#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "compiler/kernel/index_value.h"
#include "compiler/kernel/kernel.h"
#include "compiler/schedule/plan.h"

namespace kiln::proof {

class Edges {
 public:
  Edges(const kernel::Kernel& kernel, const schedule::Plan& plan, uint64_t seed);

  // Returns how often Next should be called: a few times for each edge.
  int Rounds() const;
  // Returns the values of the ranges in conditions of one stage, at the edge whose turn it is.
  // Returns nothing if none was found.
  std::optional<kernel::IndexPoint> Next();

 private:
  struct Stage {
    std::vector<const ir::Node*> conditions;
    std::vector<const ir::Node*> ranges;
  };
  struct Edge {
    const Stage* stage = nullptr;
    const ir::Node* less = nullptr;  // a kCmpLt
    bool holds = false;
  };
  int64_t Pick(const ir::Node* range);
  // Returns how far the point is on the edge's side; nothing if it is on the other side, or if
  // another condition fails.
  std::optional<int64_t> DistanceTo(const Edge& edge, const kernel::IndexPoint& point) const;

  std::vector<Stage> stages_;
  std::vector<Edge> edges_;
  std::mt19937_64 random_;
  size_t turn_ = 0;
};

}  // namespace kiln::proof

#endif  // KILN_COMPILER_PROOF_EDGES_H_
