// The text form of nodes, at the tensor level and at the kernel level: one node per line, operands
// by number.
//
//   %0 = input float32[4,8] index=0
//   %1 = const float32 value=0.5
//   %2 = reduce_sum float32[4,1] %0 axes=[1]
//   %3 = load float32 %9 %7 buffer=2
//
// A line is "%N = op dtype[shape] operands… attributes…". A scalar has no brackets. "#" starts a
// comment. Floats print with the fewest digits that read back to the same double; a NaN other than
// the default one as "bits:0x…".
#ifndef KILN_COMPILER_IR_TEXT_H_
#define KILN_COMPILER_IR_TEXT_H_

#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/ir/node.h"
#include "compiler/ir/spec.h"
#include "compiler/ir/walk.h"

namespace kiln::ir {

// "float32[4,8]", "int64".
std::string TypeText(DType dtype, absl::Span<const int64_t> shape);
// Returns a node without its number, with its operands' types instead of their numbers, for
// messages: "add float32[4,8] (float32[4,8], int32)".
std::string Describe(const Node* node);

// Numbers nodes in the order in which they are first used, so that equal graphs print equally.
//
//   TextPrinter printer("  ");
//   std::string index = printer.Print(store.index);   // "%4"; text() has the lines of %0 … %4
class TextPrinter {
 public:
  // Every line starts with `indent`.
  explicit TextPrinter(std::string indent = "") : indent_(std::move(indent)) {}

  // Writes the lines of `node` and of the nodes it depends on, except those written before. Returns
  // "%<number>".
  std::string Print(const Node* node);
  // Appends a line that is not a node.
  void Line(std::string_view line);
  const std::string& text() const { return text_; }

 private:
  std::string indent_;
  std::string text_;
  absl::flat_hash_map<const Node*, int> numbers_;
  TopologicalWalk walk_;
};

// Reads lines written by TextPrinter or by hand. Verifies every node. Safe for untrusted text.
class TextParser {
 public:
  // Nodes are made in `context`, which must outlive the parser.
  TextParser(Context& context, Level level) : context_(context), level_(level) {}

  // Parses one node's line. Errors are INVALID_ARGUMENT; the caller adds the line's number.
  absl::Status ParseNode(std::string_view line);
  // Returns the node of "%<number>".
  absl::StatusOr<const Node*> Lookup(std::string_view reference) const;

 private:
  Context& context_;
  Level level_;
  absl::flat_hash_map<int64_t, const Node*> nodes_;
};

// Returns `line` without its comment and surrounding space. If empty, there is nothing to parse.
std::string_view StripLine(std::string_view line);
// The parts of "float32[4,8]" or "int64".
struct Type {
  DType dtype = DType::kInvalid;
  Shape shape;
};
absl::StatusOr<Type> ParseType(std::string_view text);
// Parses a decimal int64 that fills all of `text`.
absl::StatusOr<int64_t> ParseInt(std::string_view text);
// Parses "1,2,3"; at least one number.
absl::StatusOr<std::vector<int64_t>> ParseIntList(std::string_view text);
// Splits at spaces and tabs.
std::vector<std::string_view> SplitWords(std::string_view line);
// Returns `status` with "line <number>: " before its message.
absl::Status AtLine(int number, const absl::Status& status);

}  // namespace kiln::ir

#endif  // KILN_COMPILER_IR_TEXT_H_
