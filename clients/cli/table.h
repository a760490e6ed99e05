// Tables for people: columns as wide as their widest cell.
#ifndef KILN_CLIENTS_CLI_TABLE_H_
#define KILN_CLIENTS_CLI_TABLE_H_

#include <ostream>
#include <string>
#include <vector>

namespace kiln::cli {

class Table {
 public:
  // A title that begins with '>' makes its column flush right; the mark is not printed.
  explicit Table(std::vector<std::string> titles);
  // As many cells as there are titles; what a terminal would obey is escaped (printable.h).
  void Add(std::vector<std::string> cells);
  // The titles in capitals, then the rows in the order of Add.
  void Print(std::ostream& out) const;
  bool empty() const { return rows_.empty(); }

 private:
  std::vector<bool> flush_right_;
  std::vector<std::string> titles_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace kiln::cli

#endif  // KILN_CLIENTS_CLI_TABLE_H_
