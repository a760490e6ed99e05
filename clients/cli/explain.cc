// kiln explain PROGRAM: graph, fused kernels, schedules, source, assembly and times.
#include <grpcpp/grpcpp.h>

#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "clients/cli/command.h"
#include "clients/cli/explain_page.h"
#include "clients/cli/find_program.h"
#include "clients/cli/format.h"
#include "clients/cli/kernel_table.h"
#include "clients/cli/pager.h"
#include "clients/cli/table.h"
#include "kiln/v1/program.grpc.pb.h"
#include "proto/text/printable.h"

namespace kiln::cli {
namespace {

struct ExplainOptions {
  std::string program;
  std::string kernel;  // empty: all
  std::string html;    // the file to write; empty: none
  bool summary = false;
  bool passes = false;
};

absl::StatusOr<ExplainOptions> Parse(const std::vector<std::string>& arguments) {
  ExplainOptions options;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--summary") {
      options.summary = true;
    } else if (arguments[i] == "--passes") {
      options.passes = true;
    } else if (arguments[i] == "--kernel") {
      if (++i == arguments.size())
        return absl::InvalidArgumentError("--kernel needs the name, digest or number of a kernel");
      options.kernel = arguments[i];
    } else if (arguments[i] == "--html") {
      if (++i == arguments.size()) return absl::InvalidArgumentError("--html needs a file");
      options.html = arguments[i];
    } else if (absl::StartsWith(arguments[i], "-")) {
      return absl::InvalidArgumentError(absl::StrCat("unknown option ", arguments[i]));
    } else if (options.program.empty()) {
      options.program = arguments[i];
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("expected one program; unexpected: ", arguments[i]));
    }
  }
  if (options.passes && (options.summary || !options.kernel.empty()))
    return absl::InvalidArgumentError("--passes cannot be used with --summary or --kernel");
  if (!options.html.empty() && (options.passes || options.summary || !options.kernel.empty()))
    return absl::InvalidArgumentError("--html writes everything; it is used alone");
  if (options.program.empty())
    return absl::InvalidArgumentError("expected a program; `kiln programs` lists them");
  return options;
}

void PrintSection(const std::string& title, const std::string& text, std::ostream& out) {
  if (text.empty()) return;
  out << "\n== " << title << '\n' << PrintableLines(text);
  if (text.back() != '\n') out << '\n';
}

void PrintProgram(const v1::Program& program, std::ostream& out) {
  out << "program   " << Printable(program.digest()) << '\n'
      << "name      " << Printable(program.name()) << '\n'
      << (program.devices_size() > 1 ? "devices   " : "device    ")
      << Printable(DevicesText(program)) << '\n'
      << "kernels   " << program.kernels() << " launches of " << program.distinct_kernels()
      << " kernels, " << program.kernels_from_cache() << " from the cache; compiled in "
      << Duration(program.compile_seconds()) << '\n'
      << "arena     " << Bytes(program.arena_bytes()) << " ("
      << Bytes(program.arena_bytes_without_reuse()) << " without reuse)\n"
      << "runs      " << program.runs() << ", " << Duration(program.device_seconds())
      << " on the device\n";
}

void PrintPasses(const google::protobuf::RepeatedPtrField<v1::PassReport>& passes,
                 std::ostream& out) {
  if (passes.empty()) return;
  out << "\n== passes\n";
  Table table({"pass", ">time"});
  for (const v1::PassReport& pass : passes) {
    table.Add({Printable(pass.pass()), pass.disabled() ? "off" : Duration(pass.seconds())});
  }
  table.Print(out);
  for (const v1::PassReport& pass : passes) {
    PrintSection("after " + Printable(pass.pass()), pass.text(), out);
  }
}

// Says in one line what became of a kernel's setting: "tuned     stage 0 form=panel …".
void PrintSetting(const v1::Kernel& kernel, std::ostream& out) {
  if (kernel.setting().empty()) return;
  out << "tuned     ";
  if (kernel.setting_refusal().empty()) {
    // Without the first line, which is the version.
    std::vector<std::string> lines = absl::StrSplit(kernel.setting(), '\n', absl::SkipEmpty());
    if (!lines.empty()) lines.erase(lines.begin());
    out << Printable(absl::StrJoin(lines, "; "));
    if (kernel.seconds_tuned() > 0) {
      out << " (" << Duration(kernel.seconds_tuned()) << "; the heuristic's "
          << Duration(kernel.seconds_heuristic()) << ')';
    }
  } else {
    out << "no; the stored setting cannot be used: " << Printable(kernel.setting_refusal());
  }
  if (!kernel.setting_ignored().empty())
    out << " (ignored: " << Printable(kernel.setting_ignored()) << ')';
  out << '\n';
}

// Says how close the kernel is to the device's limit.
void PrintRoofline(const v1::Kernel& kernel, std::ostream& out) {
  if (kernel.roofline_seconds() <= 0) return;
  out << "roofline  " << Duration(kernel.roofline_seconds()) << ", limited by "
      << Printable(kernel.roofline_limit());
  if (kernel.seconds_median() > 0) {
    out << "; the kernel reaches " << Percent(kernel.roofline_seconds() / kernel.seconds_median())
        << " of it";
  }
  out << '\n';
}

void PrintKernel(int number, const v1::Kernel& kernel, std::ostream& out) {
  const std::string title = absl::StrCat("kernel ", number, " ", Printable(kernel.name()));
  out << "\n==== " << title << ": " << kernel.launches()
      << (kernel.launches() == 1 ? " launch, " : " launches, ") << MedianText(kernel) << " each ("
      << kernel.samples() << " timed, best " << Duration(kernel.seconds_min()) << "), "
      << kernel.flops() << " FLOP, " << Bytes(kernel.bytes()) << '\n';
  PrintSetting(kernel, out);
  PrintRoofline(kernel, out);
  PrintSection(title + ": loops", kernel.ir(), out);
  PrintSection(title + ": schedule", kernel.schedule(), out);
  if (!kernel.refusal().empty()) {
    PrintSection(title + ": refused schedule", kernel.refused_schedule(), out);
    out << kernel.refusal() << "; the kernel runs with the plain schedule. Please report this.\n";
  }
  PrintSection(title + ": source", kernel.source(), out);
  PrintSection(title + ": assembly", kernel.assembly(), out);
}

void PrintFirstCall(const google::protobuf::RepeatedPtrField<v1::FirstCallPart>& parts,
                    std::ostream& out) {
  if (parts.empty()) return;
  double seconds = 0;
  Table table({"part", ">time", ">page faults"});
  for (const v1::FirstCallPart& part : parts) {
    seconds += part.seconds();
    table.Add({Printable(part.name()), Duration(part.seconds()), absl::StrCat(part.page_faults())});
  }
  out << "\n== first call: " << Duration(seconds) << " from the graph to the answer\n";
  table.Print(out);
}

bool IsWanted(int number, const v1::Kernel& kernel, const std::string& wanted) {
  return wanted.empty() || wanted == absl::StrCat(number) || wanted == kernel.name() ||
         // With fewer digits it is more likely a kernel's number.
         (wanted.size() >= 4 && absl::StartsWith(kernel.digest(), wanted));
}

absl::Status PrintKernelsCode(const v1::ExplainProgramResponse& answer, const std::string& wanted,
                              std::ostream& out) {
  bool found = false;
  for (int i = 0; i < answer.kernels_size(); ++i) {
    if (!IsWanted(i + 1, answer.kernels(i), wanted)) continue;
    PrintKernel(i + 1, answer.kernels(i), out);
    found = true;
  }
  if (found || answer.kernels().empty()) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("the program has no kernel ", wanted, "; `kiln explain ",
                                          ShortDigest(answer.program().digest()),
                                          " --summary` lists them"));
}

absl::StatusOr<v1::ExplainProgramResponse> Fetch(const Invocation& invocation,
                                                 const ExplainOptions& options) {
  absl::StatusOr<v1::ListProgramsResponse> programs = ListPrograms(invocation);
  if (!programs.ok()) return programs.status();
  absl::StatusOr<std::string> digest = FindProgram(*programs, options.program);
  if (!digest.ok()) return digest.status();
  v1::ExplainProgramRequest request;
  request.set_digest(*digest);
  // The daemon disassembles on request; without kernels' code in the output that would be wasted.
  request.set_with_assembly(!options.summary && !options.passes);
  grpc::ClientContext context;
  SetDeadline(context);
  v1::ExplainProgramResponse answer;
  auto stub = v1::ProgramService::NewStub(invocation.channel);
  if (absl::Status status = invocation.Check(stub->ExplainProgram(&context, request, &answer));
      !status.ok())
    return status;
  return answer;
}

// Prints the parts that the options choose, the times first.
absl::Status PrintExplanation(const v1::ExplainProgramResponse& answer,
                              const ExplainOptions& options, std::ostream& out) {
  if (options.passes) {
    PrintProgram(answer.program(), out);
    PrintPasses(answer.passes(), out);
    PrintFirstCall(answer.first_call(), out);
    return absl::OkStatus();
  }
  if (options.kernel.empty()) {
    PrintProgram(answer.program(), out);
    out << "\n== time per kernel\n";
    KernelTable(answer.kernels()).Print(out);
    PrintFirstCall(answer.first_call(), out);
    PrintPasses(answer.passes(), out);
    PrintSection("graph", answer.graph(), out);
    PrintSection("fused kernels", answer.partition(), out);
    PrintSection("queue", answer.queue(), out);
  }
  if (options.summary) return absl::OkStatus();
  return PrintKernelsCode(answer, options.kernel, out);
}

absl::Status WriteHtml(const Invocation& invocation, const v1::ExplainProgramResponse& answer,
                       const std::string& path) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << ExplanationPage(answer) << std::flush;
  if (!file) return absl::UnavailableError(absl::StrCat("cannot write the file ", path));
  invocation.out << "wrote " << Printable(path) << '\n';
  return absl::OkStatus();
}

}  // namespace

absl::Status RunExplain(Invocation& invocation) {
  absl::StatusOr<ExplainOptions> options = Parse(invocation.arguments);
  if (!options.ok()) return options.status();
  absl::StatusOr<v1::ExplainProgramResponse> answer = Fetch(invocation, *options);
  if (!answer.ok()) return answer.status();
  if (!options->html.empty()) return WriteHtml(invocation, *answer, options->html);
  if (invocation.json) return invocation.PrintJson(*answer);
  if (!invocation.terminal) return PrintExplanation(*answer, *options, invocation.out);
  std::ostringstream text;
  text.copyfmt(invocation.out);  // with the columns and colours of the terminal
  if (absl::Status status = PrintExplanation(*answer, *options, text); !status.ok()) return status;
  if (!ShowInPager(text.str())) invocation.out << text.str();
  return absl::OkStatus();
}

}  // namespace kiln::cli
