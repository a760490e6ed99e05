#include "clients/cli/table.h"

#include <algorithm>
#include <ios>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "proto/text/printable.h"

namespace kiln::cli {
namespace {

// Words up to this width are not broken: names, targets, parts of sentences.
constexpr size_t kWordWidthMax = 24;
constexpr size_t kGap = 2;  // between two columns

// Where a stream keeps the columns of its terminal, and whether it shows colours.
int ColumnsSlot() {
  static const int slot = std::ios_base::xalloc();
  return slot;
}
int ColorsSlot() {
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

// Adds a cell to a line.
void AppendCell(const std::string& text, Color color, size_t width, bool flush_right,
                std::ostream& out, std::string* line) {
  const std::string padding(std::max(width, Width(text)) - Width(text), ' ');
  const std::string shown = text.empty() ? text : Colored(text, color, out);
  *line += flush_right ? padding + shown : shown + padding;
}

// Prints cells in columns of these widths, on as many lines as the longest needs.
template <typename IsFlushRight>
void PrintCells(const std::vector<Cell>& cells, const std::vector<size_t>& widths,
                IsFlushRight flush_right, size_t indent, std::ostream& out) {
  std::vector<std::string> rest;
  for (const Cell& cell : cells) rest.push_back(cell.text);
  do {
    std::string line(indent, ' ');
    for (size_t column = 0; column < cells.size(); ++column) {
      if (column > 0) line.append(kGap, ' ');
      AppendCell(TakeLine(rest[column], widths[column]), cells[column].color, widths[column],
                 flush_right(column), out, &line);
    }
    out << absl::StripTrailingAsciiWhitespace(line) << '\n';
  } while (std::any_of(rest.begin(), rest.end(), [](const auto& cell) { return !cell.empty(); }));
}

std::string AsTitle(std::string text) {
  std::replace(text.begin(), text.end(), '_', ' ');
  std::replace(text.begin(), text.end(), '-', ' ');
  return absl::AsciiStrToUpper(text);
}

// Whether one cell comes before the other. Those without a value come after all that have one.
bool Precedes(const Cell& one, const Cell& other) {
  if (one.value && other.value) return *one.value > *other.value;
  if (one.value || other.value) return one.value.has_value();
  return one.text < other.text;
}

}  // namespace

size_t Width(const std::string& text) {
  // Continuation bytes of UTF-8 take no column.
  return std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; });
}

void SetColumnsMax(std::ostream& out, int columns) { out.iword(ColumnsSlot()) = columns; }
int ColumnsMax(std::ostream& out) { return static_cast<int>(out.iword(ColumnsSlot())); }
void SetColors(std::ostream& out, bool on) { out.iword(ColorsSlot()) = on ? 1 : 0; }

std::string Colored(const std::string& text, Color color, std::ostream& out) {
  if (color == Color::kNone || out.iword(ColorsSlot()) == 0) return text;
  const char* const code = color == Color::kGood ? "32" : color == Color::kWarning ? "33" : "31";
  return absl::StrCat("\x1b[", code, "m", text, "\x1b[0m");
}

Table::Table(std::vector<std::string> titles) {
  for (std::string& title : titles) {
    const bool flush_right = !title.empty() && title[0] == '>';
    flush_right_.push_back(flush_right);
    titles_.push_back(absl::AsciiStrToUpper(flush_right ? title.substr(1) : title));
  }
}

void Table::Add(std::vector<Cell> cells) {
  cells.resize(titles_.size(), Cell(""));
  // Names come from other clients, which could otherwise move the reader's cursor or fake rows.
  for (Cell& cell : cells) cell.text = Printable(cell.text);
  rows_.push_back(std::move(cells));
}

absl::Status Table::SortBy(const std::string& title) {
  const bool is_reversed = !title.empty() && title[0] == '-';
  const std::string wanted = AsTitle(title.substr(is_reversed ? 1 : 0));
  const auto found = std::find(titles_.begin(), titles_.end(), wanted);
  if (wanted.empty() || found == titles_.end()) {
    std::vector<std::string> columns;
    for (const std::string& column : titles_) columns.push_back(absl::AsciiStrToLower(column));
    return absl::InvalidArgumentError(absl::StrCat(
        "there is no column ", title, "; --sort takes one of: ", absl::StrJoin(columns, ", ")));
  }
  const size_t column = static_cast<size_t>(found - titles_.begin());
  std::stable_sort(rows_.begin(), rows_.end(), [&](const auto& one, const auto& other) {
    return is_reversed ? Precedes(other[column], one[column])
                       : Precedes(one[column], other[column]);
  });
  return absl::OkStatus();
}

size_t Table::KeepFirst(size_t rows_max) {
  if (rows_.size() <= rows_max) return 0;
  const size_t dropped = rows_.size() - rows_max;
  rows_.erase(rows_.begin() + static_cast<std::ptrdiff_t>(rows_max), rows_.end());
  return dropped;
}

size_t Table::WidthOf(size_t column) const {
  size_t width = Width(titles_[column]);
  for (const auto& row : rows_) width = std::max(width, Width(row[column].text));
  return width;
}

size_t Table::LeastWidthOf(size_t column) const {
  if (flush_right_[column]) return WidthOf(column);
  size_t word = 0;
  for (const auto& row : rows_) word = std::max(word, LongestWord(row[column].text));
  return std::max(Width(titles_[column]), std::min(word, kWordWidthMax));
}

// Makes the widest columns of a group narrower until it fits.
void Table::Narrow(size_t columns_max, Group* group) const {
  size_t total = kGap * (group->end - group->begin - 1);
  for (const size_t width : group->widths) total += width;
  while (total > columns_max) {
    size_t* widest = nullptr;
    for (size_t i = 0; i < group->widths.size(); ++i) {
      size_t& width = group->widths[i];
      if (width > LeastWidthOf(group->begin + i) && (widest == nullptr || width > *widest))
        widest = &width;
    }
    if (widest == nullptr) return;
    --*widest;
    --total;
  }
}

std::vector<Table::Group> Table::Groups(size_t columns_max) const {
  std::vector<Group> groups = {Group()};
  size_t least = 0;  // of the last group
  for (size_t column = 0; column < titles_.size(); ++column) {
    const size_t indent = groups.size() == 1 ? 0 : kGap;
    const size_t more = LeastWidthOf(column) + (groups.back().widths.empty() ? indent : kGap);
    const bool fits =
        columns_max == 0 || groups.back().widths.empty() || least + more <= columns_max;
    if (!fits) groups.push_back({.begin = column});
    least = fits ? least + more : kGap + LeastWidthOf(column);
    groups.back().end = column + 1;
    groups.back().widths.push_back(WidthOf(column));
  }
  for (Group& group : groups)
    if (columns_max != 0) Narrow(columns_max - (group.begin == 0 ? 0 : kGap), &group);
  return groups;
}

void Table::Print(std::ostream& out) const {
  const std::vector<Group> groups = Groups(static_cast<size_t>(ColumnsMax(out)));
  const auto print = [&](const auto& cells) {
    for (const Group& group : groups) {
      const auto begin = cells.begin() + static_cast<std::ptrdiff_t>(group.begin);
      const auto end = cells.begin() + static_cast<std::ptrdiff_t>(group.end);
      const auto flush_right = [&](size_t i) { return flush_right_[group.begin + i]; };
      PrintCells({begin, end}, group.widths, flush_right, group.begin == 0 ? 0 : kGap, out);
    }
  };
  print(titles_);
  for (const std::vector<Cell>& row : rows_) print(row);
}

StreamedTable::StreamedTable(std::vector<Column> columns, size_t first_min, size_t last_min,
                             std::ostream& out)
    : columns_(std::move(columns)), columns_max_(static_cast<size_t>(ColumnsMax(out))) {
  if (columns_max_ == 0) {
    columns_.back().width = std::string::npos;
    return;
  }
  size_t others = kGap * (columns_.size() - 1);
  for (size_t i = 0; i + 1 < columns_.size(); ++i) others += columns_[i].width;
  Column& first = columns_.front();
  while (others + last_min > columns_max_ && first.width > first_min) --first.width, --others;
  columns_.back().width = std::max(last_min, columns_max_ - std::min(columns_max_, others));
}

void StreamedTable::PrintTitles(std::ostream& out) const {
  std::vector<Cell> titles;
  for (const Column& column : columns_) titles.emplace_back(absl::AsciiStrToUpper(column.title));
  PrintRow(titles, out);
}

void StreamedTable::PrintRow(const std::vector<Cell>& cells, std::ostream& out) const {
  std::vector<size_t> widths;
  std::vector<Cell> shown;
  for (size_t i = 0; i < cells.size(); ++i) {
    shown.push_back(cells[i]);
    shown.back().text = Printable(cells[i].text);
    const bool is_open = columns_[i].width == std::string::npos;
    widths.push_back(is_open ? Width(shown.back().text) : columns_[i].width);
  }
  PrintCells(
      shown, widths, [this](size_t column) { return columns_[column].flush_right; }, 0, out);
}

std::string StreamedTable::OneLine(const std::vector<Cell>& cells, size_t room,
                                   std::ostream& out) const {
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) line.append(kGap, ' ');
    std::string text = Printable(cells[i].text);
    const bool is_open = columns_[i].width == std::string::npos;
    AppendCell(is_open ? text : TakeLine(text, columns_[i].width), Color::kNone,
               is_open ? 0 : columns_[i].width, columns_[i].flush_right, out, &line);
  }
  if (columns_max_ == 0) return line;
  const size_t width = columns_max_ > room ? columns_max_ - room : 0;
  return TakeLine(line, width);
}

}  // namespace kiln::cli
