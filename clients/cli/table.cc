#include "clients/cli/table.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "proto/text/printable.h"

namespace kiln::cli {

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

void Table::Print(std::ostream& out) const {
  std::vector<size_t> widths;
  for (size_t column = 0; column < titles_.size(); ++column) {
    size_t width = Width(titles_[column]);
    for (const auto& row : rows_) width = std::max(width, Width(row[column]));
    widths.push_back(width);
  }
  auto print_row = [&](const std::vector<std::string>& row) {
    std::string line;
    for (size_t column = 0; column < row.size(); ++column) {
      const std::string padding(widths[column] - Width(row[column]), ' ');
      if (column > 0) line += "  ";
      line += flush_right_[column] ? padding + row[column] : row[column] + padding;
    }
    out << absl::StripTrailingAsciiWhitespace(line) << '\n';
  };
  print_row(titles_);
  for (const auto& row : rows_) print_row(row);
}

}  // namespace kiln::cli
