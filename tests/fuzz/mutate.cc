#include "tests/fuzz/mutate.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

namespace kiln::fuzz {
namespace {

constexpr std::array<std::string_view, 16> kNumbers = {"0",
                                                       "-1",
                                                       "1",
                                                       "2147483648",
                                                       "4294967296",
                                                       "9223372036854775807",
                                                       "-9223372036854775808",
                                                       "nan",
                                                       "-inf",
                                                       "1e9",
                                                       "99999999999999999999",
                                                       "[]",
                                                       "[-1,0]",
                                                       "[0,0,0,0]",
                                                       "float32[0]",
                                                       "%0"};

// Returns a random part of `text`, up to 16 characters.
std::string Piece(Random& random, const std::string& text) {
  if (text.empty()) return "";
  return text.substr(Below(random, text.size()), 1 + Below(random, 16));
}

void MutateOnce(Random& random, std::string* bytes, const std::string& other) {
  size_t at = Below(random, bytes->size() + 1);
  bool inside = at < bytes->size();
  switch (Below(random, 7)) {
    case 0:
      if (inside) (*bytes)[at] = static_cast<char>((*bytes)[at] ^ (1 << Below(random, 8)));
      break;
    case 1:
      if (inside) (*bytes)[at] = static_cast<char>(random());
      break;
    case 2:
      bytes->erase(at, 1 + Below(random, 8));
      break;
    case 3:
      bytes->insert(at, Piece(random, *bytes));
      break;
    case 4:
      bytes->insert(at, std::string(1 + Below(random, 4), static_cast<char>(random())));
      break;
    case 5:
      bytes->insert(at, Piece(random, other));
      break;
    default:
      if (OneIn(random, 4)) bytes->resize(at);
      break;
  }
}

// Splits a text into lines or words, each with the separators after it.
std::vector<std::string> Split(const std::string& text, std::string_view separators) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = text.find_first_of(separators, begin);
    end = end == std::string::npos ? text.size() : end + 1;
    parts.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return parts;
}

std::string Join(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += part;
  return text;
}

std::string MutateLines(Random& random, const std::string& text) {
  std::vector<std::string> lines = Split(text, "\n");
  if (lines.empty()) return text;
  size_t a = Below(random, lines.size()), b = Below(random, lines.size());
  switch (Below(random, 3)) {
    case 0:
      lines.erase(lines.begin() + a);
      break;
    case 1:
      lines.insert(lines.begin() + b, std::string(lines[a]));
      break;
    default:
      std::swap(lines[a], lines[b]);
      break;
  }
  return Join(lines);
}

std::string MutateWords(Random& random, const std::string& text, const std::string& other) {
  std::vector<std::string> words = Split(text, " \n=[],");
  if (words.empty()) return text;
  std::string& word = words[Below(random, words.size())];
  char end = word.back();
  switch (Below(random, 3)) {
    case 0:
      word = words[Below(random, words.size())];
      break;
    case 1:
      word = std::string(kNumbers[Below(random, kNumbers.size())]) + end;
      break;
    default:
      word = Piece(random, other) + end;
      break;
  }
  return Join(words);
}

}  // namespace

std::string MutateBytes(Random& random, std::string bytes, const std::string& other) {
  for (size_t i = 0, n = 1 + Below(random, 8); i < n; ++i) MutateOnce(random, &bytes, other);
  return bytes;
}

std::string MutateText(Random& random, std::string text, const std::string& other) {
  for (size_t i = 0, n = OneIn(random, 2) ? 1 : 1 + Below(random, 4); i < n; ++i) {
    switch (Below(random, 8)) {
      case 0:
        MutateOnce(random, &text, other);
        break;
      case 1:
      case 2:
        text = MutateLines(random, text);
        break;
      default:
        text = MutateWords(random, text, other);
        break;
    }
  }
  return text;
}

}  // namespace kiln::fuzz
