// Makes tampering with the audit log evident: each line has a keyed hash of itself and of the line
// before it, so that an editor without the key cannot change, delete or insert a line unnoticed.
// docs/formats/audit-log.md specifies the lines, and says what the chain cannot show.
#ifndef KILN_SERVER_AUTH_AUDIT_CHAIN_H_
#define KILN_SERVER_AUTH_AUDIT_CHAIN_H_

#include <cstdint>
#include <fstream>
#include <istream>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/cache/secret.h"

namespace kiln::auth {

struct AuditEvent {
  int64_t number = 0;  // increasing, also across restarts
  absl::Time time;     // in milliseconds
  std::string user;
  std::string action;  // "add_user"
  std::string subject;
  std::string outcome;  // "ok", or the error's reason
};

// Returns the event as a line without its seal and newline. Control characters, line breaks and
// invalid UTF-8 are replaced by visible text (proto/text/printable.h), and each value is shortened
// to at most 200 bytes of the original, so that no value can be mistaken for another field or
// event.
std::string ToJson(const AuditEvent& event);
// Returns nullopt if neither ToJson nor AuditChain::Seal wrote the line. Does not check the seal.
std::optional<AuditEvent> FromJson(absl::string_view line);

// The last event of a log.
struct AuditEnd {
  int64_t number = 0;  // 0: there is none
  std::string tag;     // 64 hexadecimal digits; empty: the event has none
};

// The first thing that is wrong.
struct AuditProblem {
  std::string file;  // "audit.jsonl.1"
  int64_t line = 0;  // from 1; after the last one if the end is missing
  std::string what;  // a sentence without its full stop
};

struct AuditReport {
  int64_t events = 0;       // those that the chain protects
  int64_t unprotected = 0;  // events from versions that had no chain
  AuditEnd end;             // of the files; with a problem, of what was read
  std::optional<AuditProblem> problem;
};

// Immutable; thread-safe.
class AuditChain {
 public:
  explicit AuditChain(cache::Secret key) : key_(std::move(key)) {}

  // Returns the event's line, without its newline. `previous`: the tag of the event before, or
  // SealOf the unprotected lines before it, or kNothing. `begins_file`: it is the file's first.
  std::string Seal(const AuditEvent& event, absl::string_view previous, bool begins_file) const;
  static constexpr absl::string_view kNothing =
      "0000000000000000000000000000000000000000000000000000000000000000";
  // Returns the hash of lines that have no seal, for the first line after them.
  static std::string SealOf(absl::string_view lines);

  // Returns the tag in a line; nullopt if it has no seal. Does not check it.
  static std::optional<std::string> TagIn(absl::string_view line);

  // The text of the file that has the log's end, so that a cut is noticed. Has always the same
  // size.
  std::string HeadText(const AuditEnd& end) const;
  // Returns nullopt if it was not made with this key.
  std::optional<AuditEnd> ParseHead(absl::string_view text) const;

  // A log's files, open or in memory.
  struct Files {
    std::string name;                   // of the current file
    std::istream* earlier = nullptr;    // null: there is none
    std::istream* current = nullptr;    // null: there is none
    int64_t bytes = -1;                 // read of the current one; -1: all
    std::optional<std::string> head{};  // the text of the head's file
    // The last event that the caller knows to be written, if it does.
    AuditEnd known{};
  };
  // Reads the whole log.
  AuditReport Verify(const Files& files) const;

 private:
  class Walk;
  std::string TagOf(absl::string_view sealed, bool begins_file) const;

  const cache::Secret key_;
};

// The files of a log to which another process may append, and which it may rotate.
struct OpenAuditFiles {
  std::ifstream earlier, current;   // not open: there is none
  std::optional<std::string> head;  // read before them: it names no event that they lack
};
// `path`: of the current file. Opens files that belong together, and no two of different moments.
OpenAuditFiles OpenAudit(const std::string& path);

// Verifies the log in a state folder whose daemon may run: kilnd --verify_audit. NOT_FOUND: there
// is no log. FAILED_PRECONDITION, DATA_LOSS: there is no usable key, so nothing can be said.
absl::StatusOr<AuditReport> VerifyAuditFolder(const std::string& state_folder);

// The names of the files in the state folder.
inline constexpr char kAuditFile[] = "audit.jsonl";
inline constexpr char kAuditKeyFile[] = "audit_key";
// Appended to the log's name.
inline constexpr char kEarlierSuffix[] = ".1";
inline constexpr char kHeadSuffix[] = ".head";

}  // namespace kiln::auth

#endif  // KILN_SERVER_AUTH_AUDIT_CHAIN_H_
