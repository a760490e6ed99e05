#include "server/runtime/cache/compile_log.h"

#include "absl/strings/str_cat.h"
#include "compiler/ir/quoted.h"
#include "server/log/log.h"
#include "server/runtime/first_call.h"
#include "server/runtime/program/program.h"

namespace kiln::runtime {
namespace {

// The maximum size of a graph's text in one event.
constexpr size_t kGraphBytesMax = 64 << 10;

void LogPassesAndKernels(const std::string& program, const compiler::CompiledProgram& compiled) {
  for (const compiler::PassReport& pass : compiled.passes) {
    log::Debug("pass_ran", {{"program", program},
                            {"pass", pass.pass},
                            {"off", pass.disabled ? "yes" : "no"},
                            {"seconds", absl::StrCat(pass.seconds)}});
  }
  for (const compiler::CompiledKernel& kernel : compiled.kernels) {
    log::Debug("kernel_compiled", {{"program", program},
                                   {"kernel", kernel.image.name},
                                   {"digest", ShortDigest(kernel.digest)},
                                   {"from_cache", kernel.from_cache ? "yes" : "no"},
                                   {"seconds", absl::StrCat(kernel.compile_seconds)}});
  }
}

}  // namespace

void LogCompileStarted(const CompileLabel& label, const graph::Graph& graph) {
  if (!log::IsOn(log::Level::kDebug)) return;
  log::Debug("compile_started", {{"program", ShortDigest(label.digest)},
                                 {"name", label.name},
                                 {"device", label.device},
                                 {"nodes", absl::StrCat(graph.context->size())}});
}

void LogCompileFailed(const CompileLabel& label, const graph::Graph& graph,
                      const absl::Status& status, bool with_graph) {
  const std::string program = ShortDigest(label.digest);
  const std::string why = status.ToString();
  // The client is told its own mistakes; in the log they are only for debugging.
  if (!absl::IsInternal(status)) {
    log::Debug("compile_failed", {{"program", program}, {"name", label.name}, {"why", why}});
    return;
  }
  // With the graph, another person can reproduce the defect.
  std::string text = with_graph ? graph::Print(graph) : "logged before, or one of too many";
  text = std::string(Shortened(text, kGraphBytesMax));
  log::Error("compile_failed",
             {{"program", program}, {"name", label.name}, {"why", why}, {"graph", text}});
}

void LogCompiled(const CompileLabel& label, const compiler::CompiledProgram& program,
                 double seconds) {
  if (log::IsOn(log::Level::kDebug)) LogPassesAndKernels(ShortDigest(label.digest), program);
  log::Info("program_compiled", {{"program", ShortDigest(label.digest)},
                                 {"user", label.user},
                                 {"name", label.name},
                                 {"device", label.device},
                                 {"kernels", absl::StrCat(program.calls.size())},
                                 {"seconds", absl::StrCat(seconds)}});
}

void LogFirstCall(const std::string& run, const Program& program, const FirstCall& call,
                  const absl::Status& status) {
  std::vector<log::Field> fields = {
      {"program", program.short_digest()},
      {"name", program.description().name},
      {"run", run},
      {"status", status.ok() ? "OK" : absl::StatusCodeToString(status.code())},
      {"seconds", absl::StrCat(absl::ToDoubleSeconds(call.total()))}};
  int64_t page_faults = 0;
  const std::vector<FirstCall::Part> parts = call.parts();  // `fields` refer to its names
  for (const FirstCall::Part& part : parts) {
    page_faults += part.page_faults;
    fields.push_back({part.name, absl::StrCat(absl::ToDoubleSeconds(part.time))});
  }
  fields.push_back({"page_faults", absl::StrCat(page_faults)});
  log::Info("first_call", fields);
}

}  // namespace kiln::runtime
