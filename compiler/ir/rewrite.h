// The rewrite engine of every level: rules in a table, applied bottom-up to a fixed point.
//
//   const std::vector<Rule> rules = {
//       {"double_negation", {Op::kNeg}, [](Context&, const Node* node) -> const Node* {
//          const Node* inner = node->operand(0);
//          return inner->op() == Op::kNeg ? inner->operand(0) : nullptr;
//        }}};
//   const Node* simpler = Rewriter(context, rules).Rewrite(node);
#ifndef KILN_COMPILER_IR_REWRITE_H_
#define KILN_COMPILER_IR_REWRITE_H_

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "compiler/ir/node.h"

namespace kiln::ir {

struct Rule {
  std::string_view name;  // for reports and tests; must outlive the Rewriter
  std::vector<Op> ops;    // tried on these alone
  // A node of the same value, dtype and shape, or null (or `node` itself) where the rule does not
  // apply. The operands of `node` are already in their final form. A rule must make progress: a set
  // of rules that leads back to where it came from is cut there, and says so in the report.
  std::function<const Node*(Context& context, const Node* node)> apply;
};

struct RewriteReport {
  absl::flat_hash_map<std::string_view, int64_t> applied;  // by rule
  bool cyclic = false;  // the rules undo each other; the result is correct but no fixed point
};

// Keeps what it has rewritten, so rewriting several expressions over the same nodes costs each node
// once. The order of the table is the order of trial. Time: linear in the nodes seen, rules per op,
// and rewrites. Not thread-safe, as its Context.
class Rewriter {
 public:
  // `context` and `rules` must outlive the Rewriter.
  Rewriter(Context& context, absl::Span<const Rule> rules);

  // The fixed point for `root`; null for null.
  const Node* Rewrite(const Node* root);
  const RewriteReport& report() const { return report_; }

 private:
  struct Frame {
    const Node* node;
    size_t next_operand = 0;
    const Node* rebuilt = nullptr;      // `node` over rewritten operands
    const Node* replacement = nullptr;  // what a rule made of `rebuilt`; its rewrite is ours
  };
  // What is known of a node: absent, in progress (null) or its final form.
  using Memo = absl::flat_hash_map<const Node*, const Node*>;

  void Step();
  bool PushNextOperand();
  const Node* Rebuild(const Node* node);
  const Node* ApplyFirst(const Node* node);
  void Finish(const Node* result);

  Context& context_;
  std::array<std::vector<const Rule*>, kNumOps> rules_;
  Memo memo_;
  std::vector<Frame> stack_;
  RewriteReport report_;
};

}  // namespace kiln::ir

#endif  // KILN_COMPILER_IR_REWRITE_H_
