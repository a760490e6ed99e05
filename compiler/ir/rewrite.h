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
  std::vector<Op> ops;    // tried only on nodes of these ops
  // Returns a node of the same value, dtype and shape, or null (or `node` itself) if the rule does
  // not apply. The operands of `node` are already in their final form. A rule must make progress:
  // if a set of rules leads back to a node that is being rewritten, the rewriting stops there and
  // the report says so.
  std::function<const Node*(Context& context, const Node* node)> apply;
};

struct RewriteReport {
  absl::flat_hash_map<std::string_view, int64_t> applied;  // by rule
  bool cyclic = false;  // the rules undo each other; the result is correct but no fixed point
};

// Memoises what it has rewritten, so rewriting several expressions over the same nodes costs each
// node once. Rules are tried in the order of the table. Time: linear in the nodes seen, the rules
// per op and the rewrites. Not thread-safe, like its Context.
class Rewriter {
 public:
  // `context` and `rules` must outlive the Rewriter.
  Rewriter(Context& context, absl::Span<const Rule> rules);

  // Returns the fixed point for `root`; null for null.
  const Node* Rewrite(const Node* root);
  const RewriteReport& report() const { return report_; }

 private:
  struct Frame {
    const Node* node;
    size_t next_operand = 0;
    const Node* rebuilt = nullptr;      // `node` over rewritten operands
    const Node* replacement = nullptr;  // what a rule returned for `rebuilt`; its rewrite is final
  };
  // The state of a node: absent, in progress (null) or its final form.
  using Memo = absl::flat_hash_map<const Node*, const Node*>;

  // Checks that nothing is in progress, and that each node that was seen has its final form, of its
  // dtype and shape.
  void Validate() const;
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
