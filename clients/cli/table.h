// Tables for people: columns as wide as their widest cell, or narrower so that a row fits the
// terminal.
#ifndef KILN_CLIENTS_CLI_TABLE_H_
#define KILN_CLIENTS_CLI_TABLE_H_

#include <cstddef>
#include <ostream>
#include <string>
#include <vector>

namespace kiln::cli {

// Returns the columns that a text takes: its characters, not its bytes.
size_t Width(const std::string& text);

// Sets the columns of the terminal to which `out` writes; 0, the default: rows may have any width.
void SetColumnsMax(std::ostream& out, int columns);

class Table {
 public:
  // A title that begins with '>' right-aligns its column; the '>' is not printed.
  explicit Table(std::vector<std::string> titles);
  // Adds a row with as many cells as there are titles; terminal control characters are escaped
  // (printable.h).
  void Add(std::vector<std::string> cells);
  // Prints the titles in capitals, then the rows in the order of Add. If they do not fit the
  // terminal, the widest left-aligned columns become narrower and their cells continue on lines
  // below. Numbers stay whole.
  void Print(std::ostream& out) const;
  bool empty() const { return rows_.empty(); }

 private:
  std::vector<size_t> Widths(size_t columns_max) const;

  std::vector<bool> flush_right_;
  std::vector<std::string> titles_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace kiln::cli

#endif  // KILN_CLIENTS_CLI_TABLE_H_
