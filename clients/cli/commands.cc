// The list of subcommands, and the parsing of the command line.
#include <grpcpp/grpcpp.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iostream>
#include <numeric>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "clients/cli/command.h"
#include "clients/cli/table.h"
#include "clients/cpp/login.h"
#include "proto/text/printable.h"

namespace kiln::cli {
namespace {

constexpr Command kCommands[] = {
    {"devices", "", "lists the daemon's devices, their memory and load", "", RunDevices},
    {"sessions", "[close NAME]", "lists open sessions and what they hold",
     "  close NAME   closes a session and releases its tensors. NAME is in the column SESSION, or\n"
     "               the name under which the caller detached the session. Users can close their\n"
     "               own sessions, connected or not; admins can close all\n",
     RunSessions},
    {"programs", "", "lists compiled graphs: kernels, runs, times", "", RunPrograms},
    {"kernels", "[PROGRAM]", "lists kernels by the time they took",
     "  PROGRAM   a digest, the beginning of one, or a program's name; default: all loaded "
     "programs\n",
     RunKernels},
    {"explain", "PROGRAM", "shows a program from its graph to assembly, with times per kernel",
     "  PROGRAM         a digest, the beginning of one, or a program's name\n"
     "  --summary       leaves out the kernels' code\n"
     "  --passes        shows only the compiler's passes: their times, and the output of those\n"
     "                  in kilnd's --dump_passes\n"
     "  --kernel NAME   shows only this kernel: its name, the beginning of its digest, or its\n"
     "                  number in the summary\n",
     RunExplain},
    {"cache", "[clear]", "shows the cache of compiled kernels; `clear` empties it", "", RunCache},
    {"drain", "[DEVICE]", "stops the daemon and keeps its sessions for the next one",
     "  Waits for runs on the devices, then writes the sessions to the state folder. Clients wait\n"
     "  for the next daemon. Returns when the daemon has stopped.\n"
     "  DEVICE            only takes this device out of use: no new sessions and programs\n"
     "  --undo [DEVICE]   puts it, or all devices, back into use\n",
     RunDrain},
    {"top", "[--count N]", "shows live how much each user uses the devices",
     "  --interval SECONDS   time between two tables; default: 1\n"
     "  --count N            stops after N tables; default: when interrupted\n"
     "SHARE is the share of the device's time. Callers with the role user see only themselves.\n",
     RunTop},
    {"trace", "[--seconds N] [-o FILE]", "writes a timeline of the daemon's work for Perfetto",
     "  --seconds N   how long to trace; default: 5\n"
     "  -o FILE       default: trace.json; -: stdout. https://ui.perfetto.dev and "
     "chrome://tracing\n"
     "                open it\n"
     "  --json        prints the daemon's answers as they come, one on each line\n"
     "Rows are devices with their runs, copies and queues, the compiler, and sessions with their\n"
     "operations. Callers with the role user see their own work, and when others used a device.\n",
     RunTrace},
    {"tune", "PROGRAM|list", "searches for faster kernels of a program",
     "  PROGRAM       a digest, the beginning of one, or a program's name\n"
     "    --seconds N   for all kernels together; default: 60. The kernels that take the most of\n"
     "                  the program's time come first\n"
     "    --width N     settings that each round of a search starts from; default: 4\n"
     "    --force       also searches kernels that were searched before\n"
     "  list          lists the searches that run: yours, or everyone's for viewers and admins, "
     "who\n"
     "                also see those that the daemon makes by itself while users do nothing\n"
     "  stop ID       ends a search; ID is in the list. What it has found remains. Users can stop\n"
     "                their own searches; admins can stop all\n"
     "  export FILE   writes all settings that searches have found to the file; -: to stdout\n"
     "  import FILE   stores the file's settings, except where a faster one is stored; -: from\n"
     "                stdin. Kernels that are compiled from then on use them\n"
     "A program that is loaded keeps its kernels; the next definition of its graph gets the new\n"
     "ones. RATIO is BEFORE divided by NOW, SHARE the kernel's part of the program's time.\n",
     RunTune},
    {"user", "add|list|revoke|token", "manages the users of the daemon",
     "  add NAME [--role ROLE]   prints the user's token, only once; ROLE: viewer (sees lists),\n"
     "                           user (default) or admin\n"
     "    --by certificate       also accepts a certificate with this common name\n"
     "    --by system            also accepts this system account of the daemon's machine\n"
     "  list                     lists all users\n"
     "  revoke NAME              revokes the user's tokens and closes the user's sessions\n"
     "  token add NAME           prints another token of the user; the other tokens stay valid\n"
     "    --expires TIME         lifetime of the token: 30d, 12h, 90m\n"
     "  token list NAME          lists the user's tokens\n"
     "  token revoke ID          revokes one token; the user's sessions continue\n",
     RunUser},
    {"quota", "[set USER ...]", "shows what users hold, and their limits",
     "  set USER NAME=LIMIT...   NAME: a resource in the list; LIMIT: a number, bytes such as\n"
     "                           4GiB, \"none\", or \"default\" for the daemon's. Users keep what\n"
     "                           they already hold\n",
     RunQuota},
    {"audit", "[--follow]", "lists changes that users made for others",
     "  --follow   continues with new events\n"
     "  --json     prints one event on each line\n",
     RunAudit},
    {"version", "", "shows the versions of this program and of the daemon", "", RunVersion},
    {"completion", "bash|zsh|fish", "prints a script with which a shell completes commands",
     "  bash   for example: eval \"$(kiln completion bash)\"\n"
     "  zsh    a file _kiln in a folder of $fpath\n"
     "  fish   a file kiln.fish in ~/.config/fish/completions\n",
     RunCompletion, /*connects_itself=*/true},
    {"doctor", "", "finds out why a daemon cannot be used",
     "Checks the address, login, certificate, versions, round trip, devices and drivers, and says\n"
     "for each problem how to solve it. The exit status is 1 if there is one; warnings (warn) are\n"
     "none.\n",
     RunDoctor, /*connects_itself=*/true},
};

const Command* Find(std::string_view name) {
  for (const Command& command : kCommands) {
    if (command.name == name) return &command;
  }
  return nullptr;
}

void PrintUsage(std::ostream& out) {
  out << "usage: kiln COMMAND [--json] [--address ADDRESS]\n\n";
  for (const Command& command : kCommands) {
    out << absl::StrFormat("  %-10s %-21s  %s\n", command.name, command.arguments, command.summary);
  }
  out << "\n  --json             prints the daemon's answer as JSON\n"
         "  --address ADDRESS  unix:/path or host:port; default: $KILN_ADDRESS, then the local "
         "daemon's socket or port\n"
         "  --token TOKEN, --ca FILE, --certificate FILE, --key FILE\n"
         "                     login and TLS; default: $KILN_TOKEN, $KILN_CA, ..., then\n"
         "                     ~/.config/kiln/config.toml\n"
         "  kiln COMMAND --help shows more\n";
}

void PrintHelp(const Command& command, std::ostream& out) {
  out << "usage: kiln " << command.name << (command.arguments.empty() ? "" : " ")
      << command.arguments << " [--json] [--address ADDRESS]\n\n"
      << command.summary << '\n'
      << command.help;
}

// The options that every command has; the rest is passed to the command.
struct CommonOptions {
  bool json = false;
  bool help = false;
  client::Login login;
  std::vector<std::string> rest;
};

struct Option {
  const char* name;
  const char* example;
  std::string client::Login::*value;
};
constexpr Option kLoginOptions[] = {{"--address", "unix:/run/kilnd.sock", &client::Login::address},
                                    {"--token", "$KILN_TOKEN", &client::Login::token},
                                    {"--ca", "ca.pem", &client::Login::ca},
                                    {"--certificate", "ann.pem", &client::Login::certificate},
                                    {"--key", "ann.key", &client::Login::key}};

// Returns the option of "--ca" or "--ca=ca.pem".
const Option* FindOption(const std::string& argument) {
  for (const Option& option : kLoginOptions) {
    if (argument == option.name || absl::StartsWith(argument, absl::StrCat(option.name, "=")))
      return &option;
  }
  return nullptr;
}

absl::StatusOr<CommonOptions> Parse(absl::Span<const std::string> arguments) {
  CommonOptions options;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--json") {
      options.json = true;
    } else if (argument == "--help" || argument == "-h") {
      options.help = true;
    } else if (const Option* option = FindOption(argument)) {
      std::string& value = options.login.*option->value;
      if (argument != option->name) {
        value = argument.substr(strlen(option->name) + 1);
      } else if (++i < arguments.size()) {
        value = arguments[i];
      } else {
        return absl::InvalidArgumentError(
            absl::StrCat(option->name, " needs a value, for example ", option->example));
      }
    } else {
      options.rest.push_back(argument);
    }
  }
  return options;
}

// Assembly of a large program is more than gRPC's default limit of 4 MiB.
absl::StatusOr<std::shared_ptr<grpc::Channel>> OpenChannel(const client::Login& login) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  return client::OpenChannel(login, arguments, client::ProcessSurroundings());
}

// Connects, if the command wants that.
absl::Status Connect(const Command& command, Invocation& invocation) {
  if (command.connects_itself) return absl::OkStatus();
  const auto login = client::FindLogin(invocation.given, client::ProcessSurroundings());
  if (!login.ok()) return login.status();
  auto channel = OpenChannel(*login);
  if (!channel.ok()) return channel.status();
  invocation.address = login->address;
  invocation.elsewhere = login->elsewhere;
  invocation.channel = *std::move(channel);
  return absl::OkStatus();
}

// The columns of the terminal; 0: there is none, or it does not say.
int TerminalColumns() {
  winsize size = {};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

int Run(const Command& command, CommonOptions options, std::ostream& out, std::ostream& error) {
  Invocation invocation{.arguments = std::move(options.rest),
                        .json = options.json,
                        .terminal = &out == &std::cout && isatty(STDOUT_FILENO) != 0,
                        .given = std::move(options.login),
                        .out = out,
                        .error = error};
  auto report = [&](const absl::Status& status) {
    error << "kiln " << command.name << ": " << Printable(std::string(status.message())) << '\n';
  };
  if (const absl::Status status = Connect(command, invocation); !status.ok()) {
    report(status);
    return 2;
  }
  if (invocation.terminal) SetColumnsMax(out, TerminalColumns());
  const absl::Status status = command.run(invocation);
  // Scripts must not take half of a result for the whole.
  if (!out.flush()) {
    report(absl::UnknownError("the output could not be written completely"));
    return 1;
  }
  if (status.ok()) return 0;
  if (!status.message().empty()) report(status);
  if (status.code() != absl::StatusCode::kInvalidArgument) return 1;
  error << "`kiln " << command.name << " --help` shows how to call it\n";
  return 2;
}

// Returns how many letters must be changed, added or removed to make one word of the other
// (V. I. Levenshtein, 1965).
size_t Distance(std::string_view one, std::string_view other) {
  std::vector<size_t> row(other.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= one.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= other.size(); ++j) {
      const size_t changed = diagonal + (one[i - 1] == other[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({changed, row[j] + 1, row[j - 1] + 1}));
    }
  }
  return row.back();
}

// Names the most similar command, if one is similar.
std::string Suggestion(const std::string& unknown) {
  if (unknown.size() > 32) return "";
  const Command& nearest = *std::min_element(
      std::begin(kCommands), std::end(kCommands), [&](const Command& one, const Command& other) {
        return Distance(unknown, one.name) < Distance(unknown, other.name);
      });
  if (Distance(unknown, nearest.name) > 2) return "";
  return absl::StrCat("; did you mean `kiln ", std::string(nearest.name), "`?");
}

}  // namespace

absl::Span<const Command> AllCommands() { return kCommands; }

int Main(absl::Span<const std::string> arguments, std::ostream& out, std::ostream& error) {
  absl::StatusOr<CommonOptions> options = Parse(arguments);
  if (!options.ok()) {
    error << "kiln: " << Printable(std::string(options.status().message())) << '\n';
    return 2;
  }
  if (options->rest.size() == 1 && options->rest[0] == "--version") {
    out << "kiln " << ClientVersion() << '\n';
    return 0;
  }
  // Requested usage is output; usage instead of a result is an error.
  if (options->rest.empty() || options->rest[0] == "help") {
    PrintUsage(options->help || !options->rest.empty() ? out : error);
    return options->help || !options->rest.empty() ? 0 : 2;
  }
  const Command* command = Find(options->rest[0]);
  if (command == nullptr) {
    const std::string suggestion = Suggestion(options->rest[0]);
    error << "kiln: unknown command " << Printable(options->rest[0])
          << (suggestion.empty() ? "; `kiln help` lists the commands" : suggestion) << '\n';
    return 2;
  }
  if (options->help) {
    PrintHelp(*command, out);
    return 0;
  }
  options->rest.erase(options->rest.begin());
  return Run(*command, *std::move(options), out, error);
}

}  // namespace kiln::cli
