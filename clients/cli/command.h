// The interface of the subcommands of `kiln`.
#ifndef KILN_CLIENTS_CLI_COMMAND_H_
#define KILN_CLIENTS_CLI_COMMAND_H_

#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "clients/cli/table.h"
#include "clients/cpp/login.h"

namespace google::protobuf {
class Message;
}
namespace grpc {
class Channel;
class ClientContext;
class Status;
}  // namespace grpc

namespace kiln::cli {

// The parts of its process that the program uses; tests have their own.
struct Process {
  std::function<absl::Time()> now;
  std::function<std::optional<std::string>(const std::string& name)> environment;
  bool terminal = false;        // the output is one
  bool input_terminal = false;  // the input is one
  int columns = 0;              // of the terminal; 0: unknown, or the output is none
};

struct Invocation {
  std::vector<std::string>
      arguments;       // those after the subcommand, without the options that every command has
  bool json = false;   // print only the daemon's answer, as JSON (json.h)
  std::string sort{};  // the column of the main table to sort by (Table::SortBy); empty: none
  std::optional<size_t> rows_max{};  // of the main table
  bool terminal = false;             // `out` is a terminal
  bool input_terminal = false;
  bool interrupted = false;  // by Ctrl-C, which the command has noticed
  std::function<absl::Time()> now;
  std::string address{};
  client::Login login{};  // with which the channel was opened
  std::shared_ptr<grpc::Channel> channel{};
  client::Login given{};  // what the arguments say, for commands that connect by themselves
  std::ostream& out;
  std::ostream& error;  // for output that is not a result

  // Converts a failed call's status to one that says what to do.
  absl::Status Check(const grpc::Status& status) const;
  // Prints an answer as JSON.
  absl::Status PrintJson(const google::protobuf::Message& answer) const;
  // Prints the command's main table, sorted and cut as the caller wants. INVALID_ARGUMENT: there is
  // no such column.
  absl::Status PrintTable(Table& table) const { return PrintTable(table, out); }
  absl::Status PrintTable(Table& table, std::ostream& to) const;
  // Prints one of many answers on a line of its own (JSON Lines), flushed at once for readers that
  // follow.
  absl::Status PrintJsonLine(const google::protobuf::Message& answer) const;
  // Returns INVALID_ARGUMENT if there are arguments that the command does not know.
  absl::Status ExpectNoArguments() const;
};

// Moves the cursor of a terminal to its beginning and clears it.
inline constexpr char kClearTerminal[] = "\x1b[H\x1b[2J";

// Limits the time of a call, so that a daemon that hangs is noticed.
void SetDeadline(grpc::ClientContext& context, int seconds = 10);

struct Command {
  std::string_view name;
  std::string_view arguments;  // for the usage line
  std::string_view summary;
  std::string_view help;  // lines about arguments and columns; may be empty
  absl::Status (*run)(Invocation&);
  // The command gets no channel, address and login: it needs no daemon, or connects by itself.
  bool connects_itself = false;
  // Whether it prints a table with these arguments, for --sort, --limit and --watch; null: never.
  bool (*has_table)(const std::vector<std::string>& arguments) = nullptr;
};

absl::Status RunStatus(Invocation& invocation);
absl::Status RunLogin(Invocation& invocation);
absl::Status RunLogout(Invocation& invocation);

absl::Status RunDevices(Invocation& invocation);
absl::Status RunSessions(Invocation& invocation);
absl::Status RunPrograms(Invocation& invocation);
absl::Status RunKernels(Invocation& invocation);
absl::Status RunExplain(Invocation& invocation);
absl::Status RunCache(Invocation& invocation);
absl::Status RunDrain(Invocation& invocation);
absl::Status RunUser(Invocation& invocation);
absl::Status RunTop(Invocation& invocation);
absl::Status RunTrace(Invocation& invocation);
absl::Status RunTune(Invocation& invocation);
absl::Status RunQuota(Invocation& invocation);
absl::Status RunAudit(Invocation& invocation);
absl::Status RunVersion(Invocation& invocation);
absl::Status RunCompletion(Invocation& invocation);
absl::Status RunDoctor(Invocation& invocation);

// Returns the version of this program, such as "0.2.0".
std::string ClientVersion();

// Returns the words and options that may follow the command, as its usage and help name them.
std::vector<std::string> WordsOf(const Command& command);

absl::Span<const Command> AllCommands();

// Returns the JSON Schema of what the command prints with --json. `words`: the command, and those
// that follow it. INVALID_ARGUMENT: it prints no JSON, or the words do not say which.
absl::StatusOr<std::string> JsonSchema(const std::vector<std::string>& words);

// The whole program except the process: parses `arguments` (without the program's name), runs the
// command, prints to `out` and `error`. Returns the exit status: 0, 1 for a failure, 2 for wrong
// usage.
int Main(absl::Span<const std::string> arguments, std::ostream& out, std::ostream& error,
         const Process& process);
// The same for this process.
int Main(absl::Span<const std::string> arguments, std::ostream& out, std::ostream& error);

}  // namespace kiln::cli

#endif  // KILN_CLIENTS_CLI_COMMAND_H_
