#include "compiler/ops/rules/rule_tokens.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "compiler/ir/str_cat.h"

namespace kiln::ops {
namespace {

using Token = RuleToken;

// Longer symbols come first, since the first match is taken.
constexpr std::string_view kSymbols[] = {"->", "//", "==", "!=", "<=", ">=", "(", ")", "[", "]",
                                         ":",  ",",  ".",  "=",  "<",  ">",  "+", "-", "*", "%"};

bool IsNameLetter(char c) { return absl::ascii_isalnum(c) || c == '_'; }

size_t LengthOfName(std::string_view text) {
  return std::find_if_not(text.begin(), text.end(), IsNameLetter) - text.begin();
}

// Returns the length with both quotes; 0 if the closing one is missing.
size_t LengthOfText(std::string_view text) {
  for (size_t i = 1; i < text.size(); ++i) {
    if (text[i] == text[0]) return i + 1;
    if (text[i] == '\\') ++i;
  }
  return 0;
}

Token Next(std::string_view text) {
  const char first = text[0];
  if (absl::ascii_isdigit(first)) return {Token::Kind::kNumber, text.substr(0, LengthOfName(text))};
  if (IsNameLetter(first)) return {Token::Kind::kName, text.substr(0, LengthOfName(text))};
  if (first == '"' || first == '\'')
    return {Token::Kind::kText, text.substr(0, LengthOfText(text))};
  for (const std::string_view symbol : kSymbols) {
    if (text.substr(0, symbol.size()) == symbol) {
      return {Token::Kind::kSymbol, text.substr(0, symbol.size())};
    }
  }
  return {Token::Kind::kEnd, {}};
}

// Returns whether a line continues when `rest` follows it.
bool GoesOn(std::string_view rest) {
  rest.remove_prefix(std::min(rest.find_first_not_of(" \n"), rest.size()));
  return rest.substr(0, 1) == "\"" || rest.substr(0, 1) == "'" || rest.substr(0, 4) == "for ";
}

}  // namespace

absl::StatusOr<std::vector<RuleToken>> RuleTokens(std::string_view text) {
  std::vector<Token> tokens;
  int open = 0;
  std::string_view rest = text;
  while (!rest.empty()) {
    // As in Python, a line continues while a bracket is open.
    if (rest[0] == '\n' && open == 0 && !GoesOn(rest) && !tokens.empty() &&
        tokens.back().kind != Token::Kind::kLineEnd) {
      tokens.push_back({Token::Kind::kLineEnd, rest.substr(0, 1)});
    }
    if (rest[0] == '\n' || rest[0] == ' ') {
      rest.remove_prefix(1);
      continue;
    }
    const Token token = Next(rest);
    if (token.text.empty()) return absl::InternalError(StrCat("no token at ", rest.substr(0, 20)));
    if (token.text == "(" || token.text == "[") ++open;
    if (token.text == ")" || token.text == "]") --open;
    tokens.push_back(token);
    rest.remove_prefix(token.text.size());
  }
  tokens.push_back({Token::Kind::kEnd, text.substr(text.size())});
  return tokens;
}

}  // namespace kiln::ops
