// Run: its spans in traces.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/runtime/run/run.h"

namespace kiln::runtime {

trace::Span Run::MakeSpan(trace::Kind kind, int member) const {
  const std::string digest = program().short_digest();
  // Users share programs, and each has a name for it that others must not see.
  std::string name = program().description().name;
  if (!user_.empty()) {
    const auto use = program().UseBy(user_);
    name = use ? use->name : "";
  }
  const size_t slash = label_.find('/');
  return {.kind = kind,
          .start = absl::InfinitePast(),
          .duration = absl::ZeroDuration(),
          .name = name.empty() ? digest : ShortName(name),
          .user = user_,
          .session = slash == std::string::npos ? std::string() : label_.substr(0, slash),
          .device = device(member).name(),
          .program = digest,
          .detail = label_};
}

void Run::TraceWait(int member, absl::Duration waited) const {
  trace::Recorder& recorder = *device(member).trace_recorder();
  trace::Span span = MakeSpan(trace::Kind::kWait, member);
  span.start = recorder.now() - waited;
  span.duration = waited;
  recorder.Add(std::move(span));
}

void Run::TraceList(int member, const drivers::SubmitResult& result) const {
  trace::Recorder& recorder = *device(member).trace_recorder();
  trace::Span list = MakeSpan(trace::Kind::kRun, member);
  list.duration = absl::Seconds(result.seconds);
  list.start = recorder.now() - list.duration;
  list.number = recorder.NewNumber();
  int first = 0;
  {
    absl::MutexLock lock(&mutex_);
    first = FirstCommand(member);
  }
  std::vector<trace::Span> commands;
  absl::Time begin = list.start;
  for (const double seconds : result.command_seconds) {
    trace::Span& command = commands.emplace_back(list);
    command.kind = trace::Kind::kCommand;
    command.name = "copy or wait";
    command.start = begin;
    command.duration = absl::Seconds(seconds);
    begin += command.duration;
  }
  const compiler::CompiledProgram& compiled = sharded().compiled(member);
  const std::vector<int>& command_of_call = loaded_->members[member].command_of_call;
  for (size_t call = 0; call < command_of_call.size() && !commands.empty(); ++call) {
    const int command = command_of_call[call] - first;
    if (command < 0 || command >= static_cast<int>(commands.size())) continue;
    commands[command].name = compiled.kernels[compiled.calls[call].kernel].image.name;
  }
  recorder.Add(std::move(list), std::move(commands));
}

}  // namespace kiln::runtime
