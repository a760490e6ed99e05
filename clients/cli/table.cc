#include "clients/cli/table.h"

#include <algorithm>
#include <ios>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "proto/text/printable.h"

namespace kiln::cli {
namespace {

// Words up to this width are not broken: names, targets, parts of sentences.
constexpr size_t kWordWidthMax = 24;

// Where a stream keeps the columns of its terminal.
int ColumnsSlot() {
  static const int slot = std::ios_base::xalloc();
  return slot;
}

// Removes from `text` what fits a line of `width` columns, and returns it. Breaks at a space if
// there is one.
std::string TakeLine(std::string& text, size_t width) {
  if (Width(text) <= width) return std::exchange(text, "");
  size_t end = 0;
  for (size_t columns = 0; end < text.size(); ++end) {
    if ((text[end] & 0xC0) != 0x80 && ++columns > width) break;
  }
  const size_t space = text.rfind(' ', end);
  if (space != std::string::npos && space > 0) end = space;
  std::string line = text.substr(0, end);
  text.erase(0, text[end] == ' ' ? end + 1 : end);
  return line;
}

size_t LongestWord(const std::string& text) {
  size_t longest = 0;
  const std::vector<std::string> words = absl::StrSplit(text, ' ');
  for (const std::string& word : words) longest = std::max(longest, Width(word));
  return longest;
}

}  // namespace

size_t Width(const std::string& text) {
  // Continuation bytes of UTF-8 take no column.
  return std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; });
}

Table::Table(std::vector<std::string> titles) {
  for (std::string& title : titles) {
    const bool flush_right = !title.empty() && title[0] == '>';
    flush_right_.push_back(flush_right);
    titles_.push_back(absl::AsciiStrToUpper(flush_right ? title.substr(1) : title));
  }
}

void Table::Add(std::vector<std::string> cells) {
  cells.resize(titles_.size());
  // Names come from other clients, which could otherwise move the reader's cursor or fake rows.
  for (std::string& cell : cells) cell = Printable(cell);
  rows_.push_back(std::move(cells));
}

void SetColumnsMax(std::ostream& out, int columns) { out.iword(ColumnsSlot()) = columns; }

std::vector<size_t> Table::Widths(size_t columns_max) const {
  std::vector<size_t> widths, least;
  size_t total = 2 * (titles_.size() - 1);
  for (size_t column = 0; column < titles_.size(); ++column) {
    size_t width = Width(titles_[column]);
    size_t word = 0;
    for (const auto& row : rows_) {
      width = std::max(width, Width(row[column]));
      word = std::max(word, LongestWord(row[column]));
    }
    least.push_back(std::max(Width(titles_[column]), std::min(word, kWordWidthMax)));
    widths.push_back(width);
    total += width;
  }
  while (columns_max != 0 && total > columns_max) {
    size_t* widest = nullptr;
    for (size_t column = 0; column < widths.size(); ++column) {
      if (!flush_right_[column] && widths[column] > least[column] &&
          (widest == nullptr || widths[column] > *widest))
        widest = &widths[column];
    }
    if (widest == nullptr) break;
    --*widest;
    --total;
  }
  return widths;
}

void Table::Print(std::ostream& out) const {
  const std::vector<size_t> widths = Widths(static_cast<size_t>(out.iword(ColumnsSlot())));
  auto print_line = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (size_t column = 0; column < cells.size(); ++column) {
      const size_t width = Width(cells[column]);
      const std::string padding(std::max(widths[column], width) - width, ' ');
      if (column > 0) line += "  ";
      line += flush_right_[column] ? padding + cells[column] : cells[column] + padding;
    }
    out << absl::StripTrailingAsciiWhitespace(line) << '\n';
  };
  print_line(titles_);
  for (std::vector<std::string> rest : rows_) {
    do {
      std::vector<std::string> line(rest.size());
      for (size_t column = 0; column < rest.size(); ++column)
        line[column] = TakeLine(rest[column], widths[column]);
      print_line(line);
    } while (std::any_of(rest.begin(), rest.end(), [](const auto& cell) { return !cell.empty(); }));
  }
}

}  // namespace kiln::cli
