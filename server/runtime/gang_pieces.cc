// Gang::Cut.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "server/fairness/slices.h"
#include "server/runtime/gang.h"
#include "server/runtime/gang_recorder.h"

namespace kiln::runtime {
namespace {

using compiler::CompiledProgram;

// By stretch between exchanges, what its calls take.
std::vector<std::vector<double>> ByStretch(const CompiledProgram& program,
                                           const std::vector<double>& call_seconds) {
  std::vector<std::vector<double>> stretches(1);
  size_t exchange = 0;
  for (size_t call = 0; call <= call_seconds.size(); ++call) {
    for (; exchange < program.exchanges.size() &&
           program.exchanges[exchange].before_call <= static_cast<int>(call);
         ++exchange)
      stretches.emplace_back();
    if (call < call_seconds.size()) stretches.back().push_back(call_seconds[call]);
  }
  return stretches;
}

// The command before which the slice ends: behind its last call, or behind the exchange with which
// its stretch begins where there is none.
int EndOf(const fairness::JointSlice& slice, int member, const GangRecording& recording) {
  const int after_exchange = slice.stretch == 0 ? 0 : recording.exchange_ends[slice.stretch - 1];
  const int calls = slice.ends[member];
  return calls == 0 ? after_exchange
                    : std::max(after_exchange, recording.command_of_call[calls - 1] + 1);
}

drivers::CommandList PartOf(const drivers::CommandList& list, int begin, int end) {
  drivers::CommandList part = {list.num_slots,
                               {list.commands.begin() + begin, list.commands.begin() + end}};
  part.host_slots = list.host_slots;
  return part;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Gang::Pieces>> Gang::Cut(
    const std::shared_ptr<const Loaded>& loaded,
    const std::vector<std::vector<double>>& call_seconds, double most) const {
  for (const Loaded::OnDevice& member : loaded->members)
    if (member.list->host_bytes() > 0) return nullptr;
  std::vector<std::vector<std::vector<double>>> stretches;
  for (int i = 0; i < size(); ++i)
    stretches.push_back(ByStretch(*members_[i].compiled, call_seconds[i]));
  const std::vector<fairness::JointSlice> slices = fairness::CutTogether(stretches, most);
  if (slices.size() < 2) return nullptr;
  auto pieces = std::make_shared<Pieces>();
  pieces->loaded = loaded;
  for (const fairness::JointSlice& slice : slices) pieces->seconds.push_back(slice.seconds);
  for (int i = 0; i < size(); ++i) {
    ManagedDevice& device = *members_[i].device;
    const GangRecording recording = RecordGang(*this, *loaded, i);
    auto& lists = pieces->lists.emplace_back();
    int begin = 0;
    for (size_t piece = 0; piece < slices.size(); ++piece) {
      // What is behind all calls, exchanges and copies, is the last one's.
      const bool is_last = piece + 1 == slices.size();
      const int end = is_last ? static_cast<int>(recording.list.commands.size())
                              : EndOf(slices[piece], i, recording);
      auto list = device.device().Prepare(PartOf(recording.list, begin, end));
      if (!list.ok()) return device.AfterFailure(list.status());
      lists.push_back(*std::move(list));
      begin = end;
    }
  }
  return pieces;
}

}  // namespace kiln::runtime
