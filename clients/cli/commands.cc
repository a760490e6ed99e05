// The list of subcommands, and the parsing of the command line.
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <cstring>
#include <iostream>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "clients/cli/command.h"
#include "clients/cpp/login.h"
#include "proto/text/printable.h"

namespace kiln::cli {
namespace {

constexpr Command kCommands[] = {
    {"devices", "", "the daemon's devices, their memory and load", "", RunDevices},
    {"sessions", "[close NAME]", "who is connected, and what they hold",
     "  close NAME   ends one, with its tensors: NAME stands under SESSION, or a session of the "
     "caller's\n"
     "               was left under it (detach). Users end their own, connected or away; admins "
     "any\n",
     RunSessions},
    {"programs", "", "compiled graphs: kernels, runs, times", "", RunPrograms},
    {"kernels", "[PROGRAM]", "kernels by the time they took",
     "  PROGRAM   a digest, the beginning of one, or a program's name; without it: of all loaded "
     "programs\n",
     RunKernels},
    {"explain", "PROGRAM", "a program from its graph down to assembly, with the time per kernel",
     "  PROGRAM         a digest, the beginning of one, or a program's name\n"
     "  --summary       stop before the kernels' code\n"
     "  --passes        the compiler's passes alone: their times, and what those of kilnd's\n"
     "                  --dump_passes left\n"
     "  --kernel NAME   only this kernel: its name, the beginning of its digest, or its number in "
     "the summary\n",
     RunExplain},
    {"cache", "[clear]", "the cache of compiled kernels; `clear` empties it", "", RunCache},
    {"drain", "[DEVICE]", "ends the daemon and keeps its sessions for the next one",
     "  Runs on the devices end first; sessions are written to the state folder, and clients wait\n"
     "  for the next daemon there. Returns when the daemon has ended.\n"
     "  DEVICE            only takes this device out of use: no new sessions and programs\n"
     "  --undo [DEVICE]   takes it, or all devices, back into use\n",
     RunDrain},
    {"top", "[--count N]", "who uses the devices how much, live",
     "  --interval SECONDS   between two tables; 1 if it is not given\n"
     "  --count N            ends after so many tables; without it: when it is interrupted\n"
     "SHARE is of the device's time. Callers with the role user see themselves alone.\n",
     RunTop},
    {"user", "add|list|revoke|token", "who may use the daemon",
     "  add NAME [--role ROLE]   prints the user's token, this once; ROLE: viewer (sees lists), "
     "user\n"
     "                           (the default) or admin\n"
     "    --by certificate       the user is also known by a certificate with this common name\n"
     "    --by system            the user is also this account of the daemon's machine\n"
     "  list                     all users\n"
     "  revoke NAME              ends the user's tokens and sessions\n"
     "  token add NAME           prints another token of the user's; the earlier ones stay valid\n"
     "    --expires TIME         until then: 30d, 12h, 90m\n"
     "  token list NAME          the user's tokens\n"
     "  token revoke ID          ends one; the user's sessions go on\n",
     RunUser},
    {"quota", "[set USER ...]", "how much users have, and may have",
     "  set USER NAME=LIMIT...   NAME: a resource of the list; LIMIT: a number, bytes such as "
     "4GiB, "
     "\"none\",\n"
     "                           or \"default\" for the daemon's. What a user has already stays "
     "his\n",
     RunQuota},
    {"audit", "[--follow]", "who changed what for others",
     "  --follow   goes on with what happens from now on\n"
     "  --json     an event on each line\n",
     RunAudit},
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
    out << absl::StrFormat("  %-9s %-15s  %s\n", command.name, command.arguments, command.summary);
  }
  out << "\n  --json             the daemon's answer as JSON\n"
         "  --address ADDRESS  unix:/path or host:port; else $KILN_ADDRESS, else the local "
         "daemon's socket or port\n"
         "  --token TOKEN, --ca FILE, --certificate FILE, --key FILE\n"
         "                     who calls, and TLS; else $KILN_TOKEN, $KILN_CA, ..., else\n"
         "                     ~/.config/kiln/config.toml\n"
         "  kiln COMMAND --help says more\n";
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

int Run(const Command& command, CommonOptions options, std::ostream& out, std::ostream& error) {
  const auto login = client::FindLogin(options.login, client::ProcessSurroundings());
  const auto channel = login.ok() ? OpenChannel(*login) : login.status();
  if (!channel.ok()) {
    error << "kiln " << command.name << ": " << Printable(std::string(channel.status().message()))
          << '\n';
    return 2;
  }
  Invocation invocation{.arguments = std::move(options.rest),
                        .json = options.json,
                        .terminal = &out == &std::cout && isatty(STDOUT_FILENO) != 0,
                        .address = login->address,
                        .elsewhere = login->elsewhere,
                        .channel = *channel,
                        .out = out,
                        .error = error};
  const absl::Status status = command.run(invocation);
  if (status.ok()) return 0;
  error << "kiln " << command.name << ": " << Printable(std::string(status.message())) << '\n';
  if (status.code() != absl::StatusCode::kInvalidArgument) return 1;
  error << "`kiln " << command.name << " --help` shows how to call it\n";
  return 2;
}

}  // namespace

absl::Span<const Command> AllCommands() { return kCommands; }

int Main(absl::Span<const std::string> arguments, std::ostream& out, std::ostream& error) {
  absl::StatusOr<CommonOptions> options = Parse(arguments);
  if (!options.ok()) {
    error << "kiln: " << Printable(std::string(options.status().message())) << '\n';
    return 2;
  }
  // Requested usage is output; usage instead of a result is an error.
  if (options->rest.empty() || options->rest[0] == "help") {
    PrintUsage(options->help || !options->rest.empty() ? out : error);
    return options->help || !options->rest.empty() ? 0 : 2;
  }
  const Command* command = Find(options->rest[0]);
  if (command == nullptr) {
    error << "kiln: there is no command " << Printable(options->rest[0]) << "\n\n";
    PrintUsage(error);
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
