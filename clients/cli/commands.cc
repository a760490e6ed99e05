// The list of subcommands, and the parsing of the command line.
#include <grpcpp/grpcpp.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iostream>
#include <numeric>
#include <optional>
#include <sstream>
#include <thread>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "clients/cli/command.h"
#include "clients/cli/findings.h"
#include "clients/cli/table.h"
#include "clients/cpp/login.h"
#include "proto/text/printable.h"

namespace kiln::cli {
namespace {

// The arguments with which commands print their table.
bool Always(const std::vector<std::string>&) { return true; }
bool WithoutWords(const std::vector<std::string>& words) { return words.empty(); }
bool WithList(const std::vector<std::string>& words) {
  return !words.empty() && (words[0] == "list" || (words.size() > 1 && words[1] == "list"));
}

constexpr Command kCommands[] = {
    {"status", "", "shows the daemon on one screen, and its problems",
     "Devices, users, sessions, queue, tuner and cache, then what is wrong and what to do about "
     "it.\n"
     "Callers with the role user see only themselves, their sessions and their searches.\n",
     RunStatus, /*connects_itself=*/false, Always},
    {"login", "[ADDRESS]", "stores an address and a token for the clients on this account",
     "  ADDRESS   unix:/path or host:port; default: the local daemon's socket or port\n"
     "The token is --token, else the first line of the input, which a terminal does not show. "
     "With\n"
     "--ca FILE, --certificate FILE and --key FILE these are stored, too. The daemon must accept "
     "the\n"
     "login; then it is written to ~/.config/kiln/config.toml, which only this account may read.\n"
     "kiln, Python and C++ clients use, for each value: their arguments, else $KILN_ADDRESS,\n"
     "$KILN_TOKEN and so on, else this file, else the local daemon.\n",
     RunLogin, /*connects_itself=*/true},
    {"logout", "", "removes the token and the certificate that `kiln login` has stored", "",
     RunLogout, /*connects_itself=*/true},
    {"devices", "", "lists the daemon's devices, their memory and load", "", RunDevices,
     /*connects_itself=*/false, Always},
    {"sessions", "[close NAME]", "lists open sessions and what they hold",
     "  close NAME   closes a session and releases its tensors. NAME is in the column SESSION, or\n"
     "               the name under which the caller detached the session. Users can close their\n"
     "               own sessions, connected or not; admins can close all\n",
     RunSessions, /*connects_itself=*/false, WithoutWords},
    {"programs", "", "lists compiled graphs: kernels, runs, times", "", RunPrograms,
     /*connects_itself=*/false, Always},
    {"kernels", "[PROGRAM]", "lists kernels by the time they took",
     "  PROGRAM   a digest, the beginning of one, or a program's name; default: all loaded "
     "programs\n",
     RunKernels, /*connects_itself=*/false, Always},
    {"explain", "PROGRAM", "shows a program from its graph to assembly, with times per kernel",
     "  PROGRAM         a digest, the beginning of one, or a program's name\n"
     "  --summary       leaves out the kernels' code\n"
     "  --passes        shows only the compiler's passes: their times, and the output of those\n"
     "                  in kilnd's --dump_passes\n"
     "  --kernel NAME   shows only this kernel: its name, the beginning of its digest, or its\n"
     "                  number in the summary\n"
     "  --html FILE     writes everything to one page for a browser, which loads nothing else\n"
     "On a terminal, the output is shown by $PAGER, or by less -FRX.\n",
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
     RunTop, /*connects_itself=*/false, Always},
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
     "    --kernels_only  does not search for other kernels first: which values share one\n"
     "  list          lists the searches that run: yours, or everyone's for viewers and admins, "
     "who\n"
     "                also see those that the daemon makes by itself while users do nothing\n"
     "  stop ID       ends a search; ID is in the list. What it has found remains. Users can stop\n"
     "                their own searches; admins can stop all\n"
     "  export FILE   writes all settings that searches have found to the file; -: to stdout\n"
     "  import FILE   stores the file's settings, except where a faster one is stored; -: from\n"
     "                stdin. Kernels that are compiled from then on use them\n"
     "A program that is loaded keeps its kernels; the next definition of its graph gets the new\n"
     "ones. RATIO is BEFORE divided by NOW, SHARE the kernel's part of the program's time, "
     "ROOFLINE\n"
     "the least time that the device allows, and its limit. Ctrl-C ends the search; what it has\n"
     "found remains, and the rows are complete.\n",
     RunTune, /*connects_itself=*/false, WithList},
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
     RunUser, /*connects_itself=*/false, WithList},
    {"quota", "[set USER ...]", "shows what users hold, and their limits",
     "  set USER NAME=LIMIT...   NAME: a resource in the list; LIMIT: a number, bytes such as\n"
     "                           4GiB, \"none\", or \"default\" for the daemon's. Users keep what\n"
     "                           they already hold\n",
     RunQuota, /*connects_itself=*/false, WithoutWords},
    {"audit", "[--follow|verify]", "lists changes that users made for others",
     "  --follow   continues with new events\n"
     "  --json     prints one event on each line\n"
     "  verify     checks the seals of all events, and names the first line that was changed,\n"
     "             deleted, inserted or cut off; the exit status is 1 then\n",
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
         "  --json_schema      prints the JSON Schema of that\n"
         "  --sort COLUMN      sorts the table: numbers descend, texts ascend; -COLUMN: the "
         "reverse\n"
         "  --limit N          shows the first N rows of the table\n"
         "  --watch [SECONDS]  shows the table again and again; default: every 2 seconds\n"
         "  --color WHEN       auto (on a terminal, unless $NO_COLOR is set), always or never\n"
         "  --address ADDRESS  unix:/path or host:port; default: $KILN_ADDRESS, then the local "
         "daemon's socket or port\n"
         "  --token TOKEN, --ca FILE, --certificate FILE, --key FILE\n"
         "                     login and TLS; default: $KILN_TOKEN, $KILN_CA, ..., then what\n"
         "                     `kiln login` has stored\n"
         "  kiln COMMAND --help shows more\n";
}

void PrintHelp(const Command& command, std::ostream& out) {
  out << "usage: kiln " << command.name << (command.arguments.empty() ? "" : " ")
      << command.arguments << " [--json] [--address ADDRESS]\n\n"
      << command.summary << '\n'
      << command.help;
  if (command.run == RunTop) out << "The table of users takes --sort COLUMN and --limit N.\n";
  if (command.has_table != nullptr && command.run != RunStatus && command.run != RunTop)
    out << "The table takes --sort COLUMN, --limit N and --watch [SECONDS].\n";
}

constexpr double kWatchSeconds = 2;
constexpr double kWatchSecondsMin = 0.1;
constexpr double kWatchSecondsMax = 3600;

// The options that every command has; the rest is passed to the command.
struct CommonOptions {
  bool json = false;
  bool json_schema = false;
  bool help = false;
  std::string color = "auto";
  std::string sort;
  std::optional<size_t> rows_max;
  std::optional<double> watch_seconds;
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

// The words of a command line, one after another.
class Words {
 public:
  explicit Words(absl::Span<const std::string> words) : words_(words) {}
  bool empty() const { return next_ == words_.size(); }
  const std::string& Take() { return words_[next_++]; }
  // Returns the value of "--name VALUE" or "--name=VALUE", if `word`, which was taken, is that.
  // INVALID_ARGUMENT: it is missing.
  absl::StatusOr<std::optional<std::string>> ValueOf(const std::string& word,
                                                     const std::string& name,
                                                     std::string_view example) {
    if (absl::StartsWith(word, name + "=")) return word.substr(name.size() + 1);
    if (word != name) return std::nullopt;
    if (empty())
      return absl::InvalidArgumentError(
          absl::StrCat(name, " needs a value, for example ", std::string(example)));
    return Take();
  }
  // The next word, if it is a number.
  std::optional<double> TakeNumber() {
    double number = 0;
    if (empty() || !absl::SimpleAtod(words_[next_], &number)) return std::nullopt;
    ++next_;
    return number;
  }

 private:
  const absl::Span<const std::string> words_;
  size_t next_ = 0;
};

// Takes an option that has no value; false if the word is none.
bool TakeSwitch(const std::string& word, CommonOptions* options) {
  if (word == "--json") {
    options->json = true;
  } else if (word == "--json_schema") {
    options->json_schema = true;
  } else if (word == "--help" || word == "-h") {
    options->help = true;
  } else {
    return false;
  }
  return true;
}

// Takes --watch, whose value may be missing; false if the word is not that.
absl::StatusOr<bool> TakeWatch(const std::string& word, Words& words, CommonOptions* options) {
  if (word != "--watch" && !absl::StartsWith(word, "--watch=")) return false;
  double seconds = kWatchSeconds;
  const bool has_value = word != "--watch";
  const bool is_number = !has_value || absl::SimpleAtod(word.substr(strlen("--watch=")), &seconds);
  if (!has_value) seconds = words.TakeNumber().value_or(kWatchSeconds);
  // Also false for NaN.
  if (!is_number || !(seconds >= kWatchSecondsMin && seconds <= kWatchSecondsMax))
    return absl::InvalidArgumentError("--watch takes seconds, 0.1 to 3600");
  options->watch_seconds = seconds;
  return true;
}

// Takes an option that has a value; false if the word is none.
absl::StatusOr<bool> TakeOption(const std::string& word, Words& words, CommonOptions* options) {
  const auto limit = words.ValueOf(word, "--limit", "20");
  if (!limit.ok()) return limit.status();
  if (*limit) {
    size_t rows = 0;
    if (!absl::SimpleAtoi(**limit, &rows) || rows == 0)
      return absl::InvalidArgumentError("--limit takes a number of rows, at least 1");
    options->rows_max = rows;
    return true;
  }
  const auto color = words.ValueOf(word, "--color", "never");
  if (!color.ok()) return color.status();
  if (*color) {
    options->color = **color;
    if (**color == "auto" || **color == "always" || **color == "never") return true;
    return absl::InvalidArgumentError("--color takes auto, always or never");
  }
  const auto sort = words.ValueOf(word, "--sort", "memory");
  if (!sort.ok()) return sort.status();
  if (*sort) options->sort = **sort;
  if (*sort && options->sort.empty()) return absl::InvalidArgumentError("--sort needs a column");
  if (*sort) return true;
  for (const Option& option : kLoginOptions) {
    const auto value = words.ValueOf(word, option.name, option.example);
    if (!value.ok()) return value.status();
    if (*value) options->login.*option.value = **value;
    if (*value) return true;
  }
  return false;
}

absl::StatusOr<CommonOptions> Parse(absl::Span<const std::string> arguments) {
  CommonOptions options;
  for (Words words(arguments); !words.empty();) {
    const std::string word = words.Take();
    if (TakeSwitch(word, &options)) continue;
    auto taken = TakeWatch(word, words, &options);
    if (taken.ok() && !*taken) taken = TakeOption(word, words, &options);
    if (!taken.ok()) return taken.status();
    if (!*taken) options.rest.push_back(word);
  }
  return options;
}

// Returns why the options do not fit the command.
absl::Status CheckOptions(const Command& command, const CommonOptions& options) {
  const bool is_for_table = !options.sort.empty() || options.rows_max;
  if (!is_for_table && !options.watch_seconds) return absl::OkStatus();
  if (options.json)
    return absl::InvalidArgumentError("--sort, --limit and --watch are for tables, not for --json");
  const bool has_table = command.has_table != nullptr && command.has_table(options.rest);
  // `kiln status` has no main table, and `kiln top` has an interval of its own.
  const bool may_sort = has_table && command.run != RunStatus;
  const bool may_watch = has_table && command.run != RunTop;
  if ((!is_for_table || may_sort) && (!options.watch_seconds || may_watch)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--sort, --limit and --watch are for commands that print one table, and `kiln ",
                   std::string(command.name), "` ",
                   may_watch  ? "takes only --watch"
                   : may_sort ? "takes only --sort and --limit"
                              : "does not with these arguments"));
}

// Assembly of a large program is more than gRPC's default limit of 4 MiB.
absl::StatusOr<std::shared_ptr<grpc::Channel>> OpenChannel(const client::Login& login) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  return client::OpenChannel(login, arguments, client::ProcessSurroundings());
}

constexpr int kInterruptedStatus = 128 + 2;  // SIGINT

// The columns of the terminal; 0: there is none, or it does not say.
int TerminalColumns() {
  winsize size = {};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

// Connects, if the command wants that.
absl::Status Connect(const Command& command, Invocation& invocation) {
  if (command.connects_itself) return absl::OkStatus();
  const client::Surroundings surroundings = client::ProcessSurroundings();
  const auto login = client::FindLogin(invocation.given, surroundings);
  if (!login.ok()) return login.status();
  auto channel = OpenChannel(*login);
  if (!channel.ok()) return channel.status();
  invocation.address = login->address;
  invocation.login = *login;
  invocation.channel = *std::move(channel);
  if (!login->skipped.empty()) invocation.error << "note: " << Printable(login->skipped) << '\n';
  if (const auto readable = LoginFileFinding(surroundings))
    invocation.error << "note: " << Printable(readable->text) << '\n';
  return absl::OkStatus();
}

bool WantsColors(const CommonOptions& options, const Process& process) {
  if (options.color != "auto") return options.color == "always";
  return process.terminal && !process.environment("NO_COLOR") &&
         process.environment("TERM").value_or("") != "dumb";
}

void Complain(const Command& command, const absl::Status& status, std::ostream& error) {
  error << "kiln " << command.name << ": " << Printable(std::string(status.message())) << '\n';
}

// Runs the command again and again. Each screen is written at once, so that it does not flicker.
absl::Status Watch(const Command& command, const Invocation& invocation, double seconds) {
  while (true) {
    std::ostringstream screen;
    screen.copyfmt(invocation.out);
    if (invocation.terminal) screen << kClearTerminal;
    screen << "kiln " << command.name << " at " << invocation.address << ", "
           << absl::FormatTime("%H:%M:%S", invocation.now(), absl::LocalTimeZone()) << "\n\n";
    Invocation again{.arguments = invocation.arguments,
                     .sort = invocation.sort,
                     .rows_max = invocation.rows_max,
                     .now = invocation.now,
                     .address = invocation.address,
                     .login = invocation.login,
                     .channel = invocation.channel,
                     .given = invocation.given,
                     .out = screen,
                     .error = invocation.error};
    const absl::Status status = command.run(again);
    if (status.ok()) {
      if (!invocation.terminal) screen << '\n';
      if (!(invocation.out << screen.str() << std::flush)) return absl::OkStatus();
    } else if (absl::IsUnavailable(status)) {
      // A daemon that restarts is soon back.
      invocation.error << Printable(std::string(status.message())) << "; trying again" << std::endl;
    } else {
      return status;
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  }
}

int Run(const Command& command, CommonOptions options, std::ostream& out, std::ostream& error,
        const Process& process) {
  Invocation invocation{.arguments = std::move(options.rest),
                        .json = options.json,
                        .sort = std::move(options.sort),
                        .rows_max = options.rows_max,
                        .terminal = process.terminal,
                        .input_terminal = process.input_terminal,
                        .now = process.now,
                        .given = std::move(options.login),
                        .out = out,
                        .error = error};
  SetColors(out, WantsColors(options, process));
  if (process.columns > 0) SetColumnsMax(out, process.columns);
  if (const absl::Status status = Connect(command, invocation); !status.ok()) {
    Complain(command, status, error);
    return 2;
  }
  const absl::Status status = options.watch_seconds
                                  ? Watch(command, invocation, *options.watch_seconds)
                                  : command.run(invocation);
  // Scripts must not take half of a result for the whole.
  if (!out.flush()) {
    Complain(command, absl::UnknownError("the output could not be written completely"), error);
    return 1;
  }
  if (status.ok()) return 0;
  if (!status.message().empty()) Complain(command, status, error);
  // As a shell reports a program that Ctrl-C has ended.
  if (invocation.interrupted) return kInterruptedStatus;
  if (!absl::IsInvalidArgument(status)) return 1;
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
  const bool is_process = &out == &std::cout;
  Process process{.now = absl::Now, .environment = client::ProcessSurroundings().environment};
  process.terminal = is_process && isatty(STDOUT_FILENO) != 0;
  process.input_terminal = is_process && isatty(STDIN_FILENO) != 0;
  if (process.terminal) process.columns = TerminalColumns();
  return Main(arguments, out, error, process);
}

int Main(absl::Span<const std::string> arguments, std::ostream& out, std::ostream& error,
         const Process& process) {
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
  if (options->json_schema) {
    const auto schema = JsonSchema(options->rest);
    if (schema.ok()) out << *schema << std::flush;
    if (!schema.ok()) Complain(*command, schema.status(), error);
    return !schema.ok() ? 2 : out ? 0 : 1;
  }
  options->rest.erase(options->rest.begin());
  if (const absl::Status status = CheckOptions(*command, *options); !status.ok()) {
    Complain(*command, status, error);
    return 2;
  }
  return Run(*command, *std::move(options), out, error, process);
}

}  // namespace kiln::cli
