// The list of subcommands, and the command line around them.
#include <grpcpp/grpcpp.h>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "clients/cli/command.h"
#include "clients/cpp/address.h"
#include "proto/text/printable.h"

namespace kiln::cli {
namespace {

constexpr Command kCommands[] = {
    {"devices", "", "the daemon's devices, their memory and load", "", RunDevices},
    {"sessions", "", "who is connected, and what they hold", "", RunSessions},
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
    out << absl::StrFormat("  %-9s %-9s  %s\n", command.name, command.arguments, command.summary);
  }
  out << "\n  --json             the daemon's answer as JSON\n"
         "  --address ADDRESS  unix:/path or host:port; else $KILN_ADDRESS, else the local "
         "daemon's socket or port\n"
         "  kiln COMMAND --help says more\n";
}

void PrintHelp(const Command& command, std::ostream& out) {
  out << "usage: kiln " << command.name << (command.arguments.empty() ? "" : " ")
      << command.arguments << " [--json] [--address ADDRESS]\n\n"
      << command.summary << '\n'
      << command.help;
}

// The options that every command has; the rest goes to the command.
struct CommonOptions {
  bool json = false;
  bool help = false;
  std::string address;
  std::vector<std::string> rest;
};

absl::StatusOr<CommonOptions> Parse(absl::Span<const std::string> arguments) {
  CommonOptions options;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--json") {
      options.json = true;
    } else if (argument == "--help" || argument == "-h") {
      options.help = true;
    } else if (absl::StartsWith(argument, "--address=")) {
      options.address = argument.substr(10);
    } else if (argument == "--address") {
      if (++i == arguments.size())
        return absl::InvalidArgumentError(
            "--address needs a value, for example unix:/run/kilnd.sock");
      options.address = arguments[i];
    } else {
      options.rest.push_back(argument);
    }
  }
  return options;
}

// Assembly of a large program is more than gRPC's default limit of 4 MiB.
std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

int Run(const Command& command, CommonOptions options, std::ostream& out, std::ostream& error) {
  const std::string address = client::FindAddress(options.address, client::ProcessSurroundings());
  Invocation invocation{.arguments = std::move(options.rest),
                        .json = options.json,
                        .address = address,
                        .channel = OpenChannel(address),
                        .out = out};
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
  // Usage that was asked for is output; usage instead of a result is an error.
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
