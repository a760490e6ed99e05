// Prints scalar expressions, with names for shared subexpressions. Part of text.h's implementation.
#ifndef KILN_COMPILER_KERNEL_EXPRESSION_TEXT_H_
#define KILN_COMPILER_KERNEL_EXPRESSION_TEXT_H_

#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "compiler/ir/node.h"

namespace kiln::kernel {

class ExpressionPrinter {
 public:
  // Sets the name that is printed instead of a node: for ranges and shared expressions.
  void SetName(const ir::Node* node, std::string name) { names_[node] = std::move(name); }
  bool HasName(const ir::Node* node) const { return names_.contains(node); }

  std::string Print(const ir::Node* node) const { return PrintAt(node, 0); }
  // Prints the node itself, without using its name.
  std::string Define(const ir::Node* node) const { return Write(node, 0); }

 private:
  std::string PrintAt(const ir::Node* node, int precedence) const;
  std::string Write(const ir::Node* node, int precedence) const;
  std::string WriteConstant(const ir::Node* node) const;
  std::string WriteCall(const std::string& function, const ir::Node* node) const;
  std::string WriteLoad(const ir::Node* node) const;

  absl::flat_hash_map<const ir::Node*, std::string> names_;
};

// InfixOf returns the infix operator of a binary op, or empty. Precedence 1 is + and -, 2 is the
// others.
const char* InfixOf(ir::Op op);
int PrecedenceOf(ir::Op op);
// "sum", "prod", "max".
const char* Name(ir::ReduceKind kind);

}  // namespace kiln::kernel

#endif  // KILN_COMPILER_KERNEL_EXPRESSION_TEXT_H_
