// Expressions as C-like text. Only c_source.cc may include this.
#ifndef KILN_COMPILER_CODEGEN_C_EXPRESSION_H_
#define KILN_COMPILER_CODEGEN_C_EXPRESSION_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/ir/node.h"
#include "compiler/schedule/loop_program.h"

namespace kiln::codegen {

// "float", "int64_t", …
std::string_view CTypeName(ir::DType dtype);

// Names and the texts that depend on them. Not thread-safe.
class ExpressionPrinter {
 public:
  explicit ExpressionPrinter(const schedule::LoopProgram& program) : program_(program) {}

  void SetName(const ir::Node* range, std::string name) { names_[range] = std::move(name); }

  // Begins a statement that consists of these expressions (null ones are left out): finds what they
  // use more than once and returns the lines that define it, in order.
  std::vector<std::string> DefineShared(const std::vector<const ir::Node*>& roots);
  // After DefineShared of a statement that has it.
  std::string Text(const ir::Node* node) { return Print(node).text; }
  // As an operand of an operator that binds as strongly as `precedence`.
  std::string Operand(const ir::Node* node, int precedence);

 private:
  struct Printed {
    std::string text;
    int precedence;  // C's, 1 binding most
  };
  Printed Print(const ir::Node* node);
  Printed PrintOperator(const ir::Node* node);
  Printed PrintInfix(const ir::Node* node, std::string_view symbol, int precedence);
  Printed PrintCall(std::string_view function, const ir::Node* node);
  Printed PrintLoad(const ir::Node* node);
  Printed PrintReduce(const ir::Node* node);
  void CountUses(const ir::Node* node, absl::flat_hash_map<const ir::Node*, int>& uses,
                 std::vector<const ir::Node*>& order);

  const schedule::LoopProgram& program_;
  absl::flat_hash_map<const ir::Node*, std::string> names_;   // of ranges
  absl::flat_hash_map<const ir::Node*, std::string> shared_;  // of this statement's values
  int shared_count_ = 0;
};

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_C_EXPRESSION_H_
