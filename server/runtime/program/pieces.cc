#include "server/runtime/program/pieces.h"

#include <algorithm>
#include <utility>

#include "proto/check/check.h"
#include "server/runtime/program/record_list.h"

namespace kiln::runtime {
namespace {

using compiler::CompiledProgram;
using fairness::CommandPart;

// Returns the times of the parts, by stretch between exchanges. `parts`: of calls, then of copies,
// which come after all exchanges.
std::vector<std::vector<double>> ByStretch(const CompiledProgram& program,
                                           const std::vector<CommandPart>& parts) {
  std::vector<std::vector<double>> stretches(1);
  size_t exchange = 0;
  const auto end_before = [&](int call) {
    for (; exchange < program.exchanges.size() && program.exchanges[exchange].before_call <= call;
         ++exchange)
      stretches.emplace_back();
  };
  for (const CommandPart& part : parts) {
    end_before(part.command);
    stretches.back().push_back(part.seconds);
  }
  end_before(static_cast<int>(program.calls.size()));
  return stretches;
}

// A member's list with its calls split into parts.
struct MemberParts {
  std::vector<CommandPart> commands;
  // The number of commands up to the end of each part of a call or copy, and of each exchange.
  std::vector<int> part_ends;
  std::vector<int> exchange_ends;
};

// Returns the command of a call or, with a number beyond the calls, of a copy.
int CommandOf(const RecordedList& recorded, const CompiledProgram& program, int number) {
  const auto calls = static_cast<int>(program.calls.size());
  if (number < calls) return recorded.command_of_call[number];
  const auto first_copy = static_cast<int>(recorded.list.commands.size() - program.copies.size());
  return first_copy + number - calls;
}

MemberParts PartsOf(const RecordedList& recorded, const CompiledProgram& program,
                    const std::vector<CommandPart>& split) {
  MemberParts parts;
  size_t next = 0, exchange = 0;  // `next`: in `split`
  const auto count = [&parts] { return static_cast<int>(parts.commands.size()); };
  const auto end_exchanges = [&](int command) {
    for (; exchange < recorded.exchange_ends.size() && recorded.exchange_ends[exchange] <= command;
         ++exchange)
      parts.exchange_ends.push_back(count());
  };
  const int commands = static_cast<int>(recorded.list.commands.size());
  for (int command = 0; command < commands; ++command) {
    end_exchanges(command);
    const auto is_next = [&] {
      return next < split.size() && CommandOf(recorded, program, split[next].command) == command;
    };
    if (!is_next()) parts.commands.push_back({.command = command});
    for (; is_next(); ++next) {
      parts.commands.push_back(split[next]);
      parts.commands.back().command = command;
      parts.part_ends.push_back(count());
    }
  }
  end_exchanges(commands);
  // Each part and each exchange has an end, in order.
  KILN_CHECK_EQ(parts.part_ends.size(), split.size());
  KILN_CHECK_EQ(parts.exchange_ends.size(), recorded.exchange_ends.size());
  return parts;
}

// Returns the end of the slice's last part of a call or copy, or of the exchange that begins its
// stretch if it has no part.
int EndOf(const fairness::JointSlice& slice, int member, const MemberParts& parts) {
  const int after_exchange = slice.stretch == 0 ? 0 : parts.exchange_ends[slice.stretch - 1];
  const int ended = slice.ends[member];
  return ended == 0 ? after_exchange : std::max(after_exchange, parts.part_ends[ended - 1]);
}

// Returns the list of these commands, or parts of commands.
drivers::CommandList CommandsOf(const drivers::CommandList& all,
                                absl::Span<const CommandPart> parts) {
  drivers::CommandList list{all.num_slots, {}, all.host_slots};
  for (const CommandPart& part : fairness::Join(parts)) {
    list.commands.push_back(all.commands[part.command]);
    auto* launch = std::get_if<drivers::LaunchCommand>(&list.commands.back());
    if (launch != nullptr && launch->kernel->image().runs_parts)
      launch->points = drivers::GridRange{part.begin, part.end};
  }
  return list;
}

absl::StatusOr<std::vector<Pieces::List>> PrepareAll(
    drivers::Device& device, const RecordedList& recorded, const MemberParts& parts, int member,
    const std::vector<fairness::JointSlice>& slices) {
  std::vector<Pieces::List> lists;
  int begin = 0;
  for (size_t piece = 0; piece < slices.size(); ++piece) {
    // The last piece has all that is left, such as an exchange after all calls.
    const bool is_last = piece + 1 == slices.size();
    const int end =
        is_last ? static_cast<int>(parts.commands.size()) : EndOf(slices[piece], member, parts);
    KILN_CHECK_LE(begin, end) << "piece " << piece;
    KILN_CHECK_LE(end, parts.commands.size()) << "piece " << piece;
    const auto some = absl::MakeConstSpan(parts.commands).subspan(begin, end - begin);
    auto list = device.Prepare(CommandsOf(recorded.list, some));
    if (!list.ok()) return list.status();
    lists.push_back({*std::move(list), some.empty() ? 0 : some.front().command});
    begin = end;
  }
  KILN_CHECK_EQ(begin, parts.commands.size()) << "commands of no piece";
  return lists;
}

}  // namespace

int64_t PointsOf(const CompiledProgram& program, const compiler::KernelCall& call) {
  const drivers::KernelImage& image = program.kernels[call.kernel].image;
  return image.runs_parts ? image.grid_size : 1;
}

absl::StatusOr<std::shared_ptr<const Pieces>> CutLists(
    const ShardedProgram& program, const std::shared_ptr<const LoadedProgram>& loaded,
    absl::Span<const std::vector<fairness::CommandCost>> costs, double seconds_max) {
  KILN_CHECK_EQ(costs.size(), program.size());
  for (const LoadedProgram::Member& member : loaded->members)
    if (member.list->host_bytes() > 0) return nullptr;
  std::vector<std::vector<CommandPart>> split;
  std::vector<std::vector<std::vector<double>>> stretches;
  for (int i = 0; i < program.size(); ++i) {
    split.push_back(fairness::Split(costs[i], seconds_max));
    stretches.push_back(ByStretch(program.compiled(i), split.back()));
  }
  const std::vector<fairness::JointSlice> slices = fairness::CutTogether(stretches, seconds_max);
  if (slices.size() < 2) return nullptr;
  auto pieces = std::make_shared<Pieces>();
  pieces->loaded = loaded;
  for (const fairness::JointSlice& slice : slices) pieces->seconds.push_back(slice.seconds);
  for (int i = 0; i < program.size(); ++i) {
    ManagedDevice& device = program.device(i);
    const RecordedList recorded = RecordList(program, *loaded, i);
    const MemberParts parts = PartsOf(recorded, program.compiled(i), split[i]);
    auto lists = PrepareAll(device.device(), recorded, parts, i, slices);
    if (!lists.ok()) return device.AfterFailure(lists.status());
    KILN_CHECK_EQ(lists->size(), pieces->seconds.size());
    pieces->lists.push_back(*std::move(lists));
  }
  return pieces;
}

}  // namespace kiln::runtime
