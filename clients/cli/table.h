// Tables for people: columns as wide as their widest cell, or narrower so that a row fits the
// terminal.
#ifndef KILN_CLIENTS_CLI_TABLE_H_
#define KILN_CLIENTS_CLI_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace kiln::cli {

// Returns the columns that a text takes: its characters, not its bytes.
size_t Width(const std::string& text);

// Sets the columns of the terminal to which `out` writes; 0, the default: rows may have any width.
void SetColumnsMax(std::ostream& out, int columns);
int ColumnsMax(std::ostream& out);
// Sets whether `out` shows colours; by default it does not.
void SetColors(std::ostream& out, bool on);

// A colour repeats what the text says.
enum class Color { kNone, kGood, kWarning, kBad };

// Returns the text in its colour, if `out` shows colours.
std::string Colored(const std::string& text, Color color, std::ostream& out);

// The text of a cell. Rows are sorted by its value if it has one, else by the text.
struct Cell {
  Cell(std::string text) : text(std::move(text)) {}  // NOLINT: cells are mostly texts
  Cell(const char* text) : text(text) {}             // NOLINT
  Cell(std::string text, Color color) : text(std::move(text)), color(color) {}
  Cell(std::string text, double value) : text(std::move(text)), value(value) {}

  std::string text;
  std::optional<double> value{};
  Color color = Color::kNone;
};

class Table {
 public:
  // A title that begins with '>' right-aligns its column; the '>' is not printed.
  explicit Table(std::vector<std::string> titles);
  // Adds a row with as many cells as there are titles; terminal control characters are escaped
  // (printable.h).
  void Add(std::vector<Cell> cells);
  // Sorts the rows by the column with this title, in letters of either case; a blank in it may be
  // '_' or '-'. Numbers descend, texts ascend; a '-' before the title reverses that. Rows with
  // equal cells keep their order. INVALID_ARGUMENT names the columns.
  absl::Status SortBy(const std::string& title);
  // Drops all rows but the first `rows_max`; returns how many.
  size_t KeepFirst(size_t rows_max);
  // Prints the titles in capitals, then the rows in their order. If they do not fit the terminal,
  // the widest left-aligned columns become narrower and their cells continue on lines below. If
  // that is not enough, titles and rows continue with their last columns on indented lines. Numbers
  // stay whole.
  void Print(std::ostream& out) const;
  bool empty() const { return rows_.empty(); }

 private:
  // Neighbouring columns that are printed on one line.
  struct Group {
    size_t begin = 0;
    size_t end = 0;  // the column after the last one
    std::vector<size_t> widths{};
  };
  std::vector<Group> Groups(size_t columns_max) const;
  size_t WidthOf(size_t column) const;       // of the widest cell
  size_t LeastWidthOf(size_t column) const;  // of a column that was made narrower
  void Narrow(size_t columns_max, Group* group) const;

  std::vector<bool> flush_right_;
  std::vector<std::string> titles_;
  std::vector<std::vector<Cell>> rows_;
};

// A table whose rows are printed as they come, so its columns have widths that are known before.
class StreamedTable {
 public:
  struct Column {
    std::string title;
    size_t width = 0;
    bool flush_right = false;
  };
  // The last column takes what the terminal has left. If that is less than `last_min`, the first
  // column becomes narrower, down to `first_min`.
  StreamedTable(std::vector<Column> columns, size_t first_min, size_t last_min, std::ostream& out);

  void PrintTitles(std::ostream& out) const;
  // Prints the row; cells that do not fit their column continue on lines below.
  void PrintRow(const std::vector<Cell>& cells, std::ostream& out) const;
  // Returns the row as one line without its end, cut to the terminal's width less `room`.
  std::string OneLine(const std::vector<Cell>& cells, size_t room, std::ostream& out) const;

 private:
  std::vector<Column> columns_;
  size_t columns_max_;
};

}  // namespace kiln::cli

#endif  // KILN_CLIENTS_CLI_TABLE_H_
