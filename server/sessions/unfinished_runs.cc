#include "server/sessions/unfinished_runs.h"

namespace kiln::sessions {

UnfinishedRuns::Entry UnfinishedRuns::End(uint64_t sequence) {
  const auto found = entries_.find(sequence);
  if (found == entries_.end()) return {};
  Entry entry = std::move(found->second);
  entries_.erase(found);
  return entry;
}

std::vector<uint64_t> UnfinishedRuns::Cancel(uint64_t first, const runtime::ValuePointer& failed,
                                             HandleTable* handles) {
  std::vector<uint64_t> cancelled;
  for (auto entry = entries_.rbegin(); entry != entries_.rend() && entry->first >= first; ++entry) {
    Entry& unfinished = entry->second;
    // Earlier runs may still be cancelled after one that has failed or was cancelled already.
    if (!unfinished.run->Cancel()) continue;
    unfinished.is_cancelled = true;
    cancelled.push_back(entry->first);
    for (size_t i = 0; i < unfinished.outputs.size(); ++i)
      handles->RebindIf(unfinished.outputs[i], unfinished.output_values[i], failed);
    for (const Update& update : unfinished.updates)
      handles->RebindIf(update.handle, update.after, update.before);
  }
  return cancelled;
}

bool UnfinishedRuns::IsCancelled(uint64_t sequence) const {
  const auto found = entries_.find(sequence);
  return found != entries_.end() && found->second.is_cancelled;
}

const UnfinishedRuns::Entry* UnfinishedRuns::Find(uint64_t sequence) const {
  const auto found = entries_.find(sequence);
  return found == entries_.end() ? nullptr : &found->second;
}

}  // namespace kiln::sessions
