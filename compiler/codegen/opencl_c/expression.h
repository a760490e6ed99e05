// Expressions of a loop program as OpenCL C. Internal to codegen/opencl_c.
//
// Every text has the value of its node and, after C's promotion of bools and small integers to int,
// its type. Signed integers that could overflow are added as unsigned ones, since C leaves signed
// overflow undefined.
#ifndef KILN_COMPILER_CODEGEN_OPENCL_C_EXPRESSION_H_
#define KILN_COMPILER_CODEGEN_OPENCL_C_EXPRESSION_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/codegen/opencl_c/preamble.h"
#include "compiler/ir/node.h"
#include "compiler/kernel/index_bounds.h"
#include "compiler/schedule/loop_program.h"

namespace kiln::codegen {

// C's precedences; 1 binds most tightly.
inline constexpr int kPrimary = 1;
inline constexpr int kUnary = 2;
inline constexpr int kProduct = 3;
inline constexpr int kSum = 4;
inline constexpr int kShift = 5;
inline constexpr int kRelation = 6;
inline constexpr int kEquality = 7;
inline constexpr int kLogicalAnd = 11;
inline constexpr int kLogicalOr = 12;
inline constexpr int kConditional = 13;

// Prints expressions; knows the names that their texts use. Not thread-safe.
class ExpressionPrinter {
 public:
  ExpressionPrinter(const schedule::LoopProgram& program, Preamble& preamble)
      : program_(program), preamble_(preamble) {}

  void SetName(const ir::Node* range, std::string name) { names_[range] = std::move(name); }
  // Sets the variable of the open loop over vector lanes; empty: none.
  void SetLane(std::string name) { lane_ = std::move(name); }

  // Begins a statement: forgets the names of the previous one's values.
  void BeginStatement() { shared_.clear(); }
  // Returns the lines that define, in order, shared values of these expressions of the statement:
  // values used more than once, reductions over lanes, and parts of expressions that would be too
  // long. Null expressions are ignored.
  std::vector<std::string> DefineShared(const std::vector<const ir::Node*>& roots);
  // Requires: DefineShared was called for a statement that contains it.
  std::string Text(const ir::Node* node) { return Print(node).text; }
  // Returns the text as an operand of an operator that binds as strongly as `precedence`.
  std::string Operand(const ir::Node* node, int precedence);
  // Returns an element of a buffer, to read or to write.
  std::string Element(int buffer, const ir::Node* index);

 private:
  struct Printed {
    std::string text;
    int precedence;
  };
  using Uses = absl::flat_hash_map<const ir::Node*, int>;
  void CountUses(const ir::Node* node, Uses& uses, std::vector<const ir::Node*>& order);
  std::vector<std::string> DefineReduce(const ir::Node* node);
  std::string Define(const ir::Node* node, std::string_view text);

  Printed Print(const ir::Node* node);
  Printed PrintLoad(const ir::Node* node);

  // In operator.cc.
  Printed PrintOperator(const ir::Node* node);
  Printed PrintArithmetic(const ir::Node* node, std::string_view symbol, int precedence);
  Printed PrintDivision(const ir::Node* node);
  Printed PrintShift(const ir::Node* node);
  Printed PrintExtremum(const ir::Node* node);
  Printed PrintMinus(const ir::Node* node);
  Printed PrintNot(const ir::Node* node);
  Printed PrintCast(const ir::Node* node);
  Printed PrintBitcast(const ir::Node* node);
  Printed PrintInfix(const ir::Node* node, std::string_view symbol, int precedence);
  Printed PrintCall(std::string_view function, const std::vector<const ir::Node*>& arguments);
  std::string InfixOperand(const ir::Node* node, const ir::Node* other, int precedence);
  std::string ToFloat(const ir::Node* node);
  bool MayWrap(const ir::Node* node);

  const schedule::LoopProgram& program_;
  Preamble& preamble_;
  kernel::IndexBounds bounds_;
  ir::Context context_;                                       // of nodes made here
  absl::flat_hash_map<const ir::Node*, std::string> names_;   // of ranges
  absl::flat_hash_map<const ir::Node*, std::string> shared_;  // of this statement's values
  std::string lane_;
  int shared_count_ = 0;
};

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_OPENCL_C_EXPRESSION_H_
