// kiln tune PROGRAM | list | stop ID | export FILE | import FILE
#include <grpcpp/grpcpp.h>

#include <fstream>
#include <iostream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "clients/cli/command.h"
#include "clients/cli/tune_program.h"
#include "clients/cli/tunings.h"
#include "kiln/v1/admin.grpc.pb.h"
#include "proto/text/printable.h"

namespace kiln::cli {
namespace {

// The file that is stdin or stdout.
constexpr char kStandard[] = "-";
// For 20,000 settings and a slow disk.
constexpr int kSecondsMax = 120;

absl::Status FileError(std::string_view what, const std::string& file) {
  return absl::UnavailableError(absl::StrCat("cannot ", absl::string_view(what.data(), what.size()),
                                             " the file ", Printable(file)));
}

absl::Status Export(Invocation& invocation, v1::AdminService::Stub& stub, const std::string& file) {
  grpc::ClientContext context;
  SetDeadline(context, kSecondsMax);
  v1::ExportSettingsResponse answer;
  absl::Status status = invocation.Check(stub.ExportSettings(&context, {}, &answer));
  if (!status.ok()) return status;
  if (file == kStandard) {
    // Nothing else is written there.
    invocation.out << answer.text() << std::flush;
    return invocation.out ? absl::OkStatus() : FileError("write", "(stdout)");
  }
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out << answer.text() << std::flush;
  if (!out) return FileError("write", file);
  answer.clear_text();
  if (invocation.json) return invocation.PrintJson(answer);
  invocation.out << "wrote " << answer.settings() << " settings\n";
  return absl::OkStatus();
}

absl::Status Import(Invocation& invocation, v1::AdminService::Stub& stub, const std::string& file) {
  std::ifstream opened;
  if (file != kStandard) opened.open(file, std::ios::binary);
  std::istream& in = file == kStandard ? std::cin : opened;
  v1::ImportSettingsRequest request;
  request.set_text(std::string(std::istreambuf_iterator<char>(in), {}));
  if (!in) return FileError("read", file);
  grpc::ClientContext context;
  SetDeadline(context, kSecondsMax);
  v1::ImportSettingsResponse answer;
  absl::Status status = invocation.Check(stub.ImportSettings(&context, request, &answer));
  // The mistake is in the file, and not in how the command was called.
  if (absl::IsInvalidArgument(status)) {
    return absl::FailedPreconditionError(
        absl::StrCat(Printable(file), ": ", Printable(std::string(status.message()))));
  }
  if (!status.ok()) return status;
  if (invocation.json) return invocation.PrintJson(answer);
  invocation.out << "added " << answer.added() << " settings, replaced " << answer.replaced()
                 << " by faster ones, kept " << answer.kept() << '\n';
  if (answer.dropped() > 0)
    invocation.out << answer.dropped()
                   << " did not fit: the daemon's store of settings is full, and keeps what it "
                      "has\n";
  return absl::OkStatus();
}

}  // namespace

absl::Status RunTune(Invocation& invocation) {
  auto stub = v1::AdminService::NewStub(invocation.channel);
  const std::vector<std::string>& arguments = invocation.arguments;
  if (arguments.size() == 2 && arguments[0] == "export")
    return Export(invocation, *stub, arguments[1]);
  if (arguments.size() == 2 && arguments[0] == "import")
    return Import(invocation, *stub, arguments[1]);
  if (!arguments.empty() && (arguments[0] == "export" || arguments[0] == "import"))
    return absl::InvalidArgumentError(absl::StrCat("expected `", arguments[0], " FILE`"));
  if (arguments.size() == 1 && arguments[0] == "list") return ListTunings(invocation);
  if (!arguments.empty() && arguments[0] == "stop") return StopTuning(invocation);
  return TuneProgram(invocation);
}

}  // namespace kiln::cli
