// The tokens and expressions of the kernel text. Part of text.h's implementation.
#ifndef KILN_COMPILER_KERNEL_TEXT_PARSER_H_
#define KILN_COMPILER_KERNEL_TEXT_PARSER_H_

#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/kernel/kernel.h"

namespace kiln::kernel {

// Reads from the front of one line. Safe for untrusted text.
class LineReader {
 public:
  explicit LineReader(std::string_view line) : rest_(line) {}

  bool AtEnd();
  // Skips space, then takes the text if it is next.
  bool Take(std::string_view text);
  absl::Status Expect(std::string_view text);
  // A name: letters, digits and "_", beginning with a letter.
  absl::StatusOr<std::string> TakeName();
  absl::StatusOr<int64_t> TakeInt();
  // Takes the characters of a number, including signs and exponent; empty if there is none.
  std::string TakeNumber();
  absl::Status Error(const std::string& what) const;

 private:
  void SkipSpace();
  std::string_view rest_;
};

// Reads expressions over named ranges, values and buffers.
class ExpressionParser {
 public:
  ExpressionParser(ir::Context& context, const std::vector<Buffer>& buffers)
      : context_(context), buffers_(buffers) {}

  void Define(std::string name, const ir::Node* node) { names_[std::move(name)] = node; }
  bool IsDefined(const std::string& name) const { return names_.contains(name); }
  // Sets the ranges of the reductions parsed after this call.
  void SetReduceRanges(std::vector<const ir::Node*> ranges) { reduce_ranges_ = std::move(ranges); }

  absl::StatusOr<const ir::Node*> Parse(LineReader& line) { return ParseSum(line); }
  // "b3[index]" or "b3[index if valid]", after the name.
  struct Place {
    int buffer = 0;
    const ir::Node* index = nullptr;
    const ir::Node* valid = nullptr;
  };
  absl::StatusOr<Place> ParsePlace(LineReader& line, const std::string& name);

 private:
  using Result = absl::StatusOr<const ir::Node*>;

  Result ParseSum(LineReader& line);
  Result ParseProduct(LineReader& line);
  Result ParsePrimary(LineReader& line);
  Result ParseConstant(LineReader& line, const std::string& number);
  Result ParseCall(LineReader& line, const std::string& function);
  Result MakeCall(LineReader& line, const std::string& function,
                  std::vector<const ir::Node*> operands);
  Result Binary(LineReader& line, ir::Op op, const ir::Node* a, const ir::Node* b);

  ir::Context& context_;
  const std::vector<Buffer>& buffers_;
  absl::flat_hash_map<std::string, const ir::Node*> names_;
  std::vector<const ir::Node*> reduce_ranges_;
  int depth_ = 0;
};

}  // namespace kiln::kernel

#endif  // KILN_COMPILER_KERNEL_TEXT_PARSER_H_
