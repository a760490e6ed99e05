// A prepared SQLite statement that can be reused. Internal to sealed tables.
#ifndef KILN_SERVER_CACHE_STATEMENT_H_
#define KILN_SERVER_CACHE_STATEMENT_H_

#include <sqlite3.h>

#include <cstdint>
#include <string>

namespace kiln::cache {

class Statement {
 public:
  Statement(sqlite3* database, const std::string& sql) {
    sqlite3_prepare_v3(database, sql.c_str(), -1, SQLITE_PREPARE_PERSISTENT, &statement_, nullptr);
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& Blob(int index, const std::string& value) {
    sqlite3_bind_blob64(statement_, index, value.data(), value.size(), SQLITE_STATIC);
    return *this;
  }
  Statement& Int(int index, int64_t value) {
    sqlite3_bind_int64(statement_, index, value);
    return *this;
  }
  int Step() { return statement_ ? sqlite3_step(statement_) : SQLITE_ERROR; }
  int64_t ColumnInt(int column) { return sqlite3_column_int64(statement_, column); }
  std::string ColumnBlob(int column) {
    const void* data = sqlite3_column_blob(statement_, column);
    return data ? std::string(static_cast<const char*>(data),
                              sqlite3_column_bytes(statement_, column))
                : "";
  }
  void Reset() {
    sqlite3_reset(statement_);
    sqlite3_clear_bindings(statement_);
  }

 private:
  sqlite3_stmt* statement_ = nullptr;
};

}  // namespace kiln::cache

#endif  // KILN_SERVER_CACHE_STATEMENT_H_
