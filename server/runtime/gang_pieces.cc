// Gang::Cut.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "server/fairness/slices.h"
#include "server/runtime/gang.h"
#include "server/runtime/gang_recorder.h"
#include "server/runtime/program.h"

namespace kiln::runtime {
namespace {

using compiler::CompiledProgram;

using fairness::CommandPart;

std::vector<CommandPart> SplitCalls(const CompiledProgram& program,
                                    const std::vector<double>& call_seconds, double seconds_max) {
  const std::vector<int64_t> points = CallPoints(program);
  std::vector<fairness::CommandCost> costs;
  for (size_t call = 0; call < points.size(); ++call)
    costs.push_back({call_seconds[call], points[call]});
  return fairness::Split(costs, seconds_max);
}

// Returns the times of the parts of calls, by stretch between exchanges.
std::vector<std::vector<double>> ByStretch(const CompiledProgram& program,
                                           const std::vector<CommandPart>& calls) {
  std::vector<std::vector<double>> stretches(1);
  size_t exchange = 0;
  const auto end_before = [&](int call) {
    for (; exchange < program.exchanges.size() && program.exchanges[exchange].before_call <= call;
         ++exchange)
      stretches.emplace_back();
  };
  for (const CommandPart& part : calls) {
    end_before(part.command);
    stretches.back().push_back(part.seconds);
  }
  end_before(static_cast<int>(program.calls.size()));
  return stretches;
}

// A member's list with its calls split into parts.
struct MemberParts {
  std::vector<CommandPart> commands;
  // The number of commands up to the end of each part of a call, and of each exchange.
  std::vector<int> part_ends;
  std::vector<int> exchange_ends;
};

MemberParts PartsOf(const GangRecording& recording, const std::vector<CommandPart>& calls) {
  MemberParts parts;
  size_t next = 0, exchange = 0;  // `next`: part of a call
  const auto count = [&parts] { return static_cast<int>(parts.commands.size()); };
  const auto end_exchanges = [&](int command) {
    for (;
         exchange < recording.exchange_ends.size() && recording.exchange_ends[exchange] <= command;
         ++exchange)
      parts.exchange_ends.push_back(count());
  };
  const int commands = static_cast<int>(recording.list.commands.size());
  for (int command = 0; command < commands; ++command) {
    end_exchanges(command);
    const auto is_next = [&] {
      return next < calls.size() && recording.command_of_call[calls[next].command] == command;
    };
    if (!is_next()) parts.commands.push_back({.command = command});
    for (; is_next(); ++next) {
      parts.commands.push_back(calls[next]);
      parts.commands.back().command = command;
      parts.part_ends.push_back(count());
    }
  }
  end_exchanges(commands);
  return parts;
}

// Returns the end of the slice's last part of a call, or of the exchange that begins its stretch if
// it has no part.
int EndOf(const fairness::JointSlice& slice, int member, const MemberParts& parts) {
  const int after_exchange = slice.stretch == 0 ? 0 : parts.exchange_ends[slice.stretch - 1];
  const int calls = slice.ends[member];
  return calls == 0 ? after_exchange : std::max(after_exchange, parts.part_ends[calls - 1]);
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Gang::Pieces>> Gang::Cut(
    const std::shared_ptr<const Loaded>& loaded,
    const std::vector<std::vector<double>>& call_seconds, double seconds_max) const {
  for (const Loaded::OnDevice& member : loaded->members)
    if (member.list->host_bytes() > 0) return nullptr;
  std::vector<std::vector<CommandPart>> calls;
  std::vector<std::vector<std::vector<double>>> stretches;
  for (int i = 0; i < size(); ++i) {
    calls.push_back(SplitCalls(*members_[i].compiled, call_seconds[i], seconds_max));
    stretches.push_back(ByStretch(*members_[i].compiled, calls.back()));
  }
  const std::vector<fairness::JointSlice> slices = fairness::CutTogether(stretches, seconds_max);
  if (slices.size() < 2) return nullptr;
  auto pieces = std::make_shared<Pieces>();
  pieces->loaded = loaded;
  for (const fairness::JointSlice& slice : slices) pieces->seconds.push_back(slice.seconds);
  for (int i = 0; i < size(); ++i) {
    ManagedDevice& device = *members_[i].device;
    const GangRecording recording = RecordGang(*this, *loaded, i);
    const MemberParts parts = PartsOf(recording, calls[i]);
    auto& lists = pieces->lists.emplace_back();
    auto& first_commands = pieces->first_commands.emplace_back();
    int begin = 0;
    for (size_t piece = 0; piece < slices.size(); ++piece) {
      // Commands after all calls (exchanges and copies) belong to the last piece.
      const bool is_last = piece + 1 == slices.size();
      const int end =
          is_last ? static_cast<int>(parts.commands.size()) : EndOf(slices[piece], i, parts);
      const auto some = absl::MakeConstSpan(parts.commands).subspan(begin, end - begin);
      auto list = device.device().Prepare(CommandsOf(recording.list, some));
      if (!list.ok()) return device.AfterFailure(list.status());
      lists.push_back(*std::move(list));
      first_commands.push_back(some.empty() ? 0 : some.front().command);
      begin = end;
    }
  }
  return pieces;
}

}  // namespace kiln::runtime
