// Parts of the parser; see syntax.h for the result.
#ifndef KILN_TESTS_STAND_INS_CUDA_PTX_PARSER_H_
#define KILN_TESTS_STAND_INS_CUDA_PTX_PARSER_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "tests/stand_ins/cuda/ptx/syntax.h"
#include "tests/stand_ins/cuda/ptx/token.h"

namespace kiln::stand_ins::ptx {

// The parser's position in the text. The first error is kept; after it, every token is the end of
// the text, so that callers may check for errors late.
class TokenReader {
 public:
  explicit TokenReader(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& Peek(int ahead = 0) const;
  Token Next();
  bool Take(absl::string_view text);  // consumes it if it is the next token
  void Expect(absl::string_view text);
  std::string Word();
  int64_t Integer();
  void SkipLine();
  void SkipBraces();
  bool AtEnd() const { return Peek().kind == Token::Kind::kEnd; }

  // INVALID_ARGUMENT, at the next token.
  void Fail(absl::string_view what);
  void Refuse(absl::string_view what);
  const absl::Status& status() const { return status_; }

 private:
  std::vector<Token> tokens_;
  size_t at_ = 0;
  absl::Status status_;
};

// A number with its sign: 12, -0x1F, 0f3F800000, 0d3FF0000000000000, 1.5 (an f64).
Operand ReadNumber(TokenReader& reader);

// Reads from after the state space to before the semicolon or comma: `.align 4 .b8 name[16] = {1,
// 2}`.
Variable ReadVariable(TokenReader& reader, Space space);

// Reads from after the `{` of a function's body to its `}`.
void ReadBody(TokenReader& reader, Function& function);

}  // namespace kiln::stand_ins::ptx

#endif  // KILN_TESTS_STAND_INS_CUDA_PTX_PARSER_H_
