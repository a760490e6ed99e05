#include "server/runtime/programs_by_source.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace kiln::runtime {

ProgramsBySource::Entry* ProgramsBySource::Find(const Key& key) {
  const auto found = entries_.find(key);
  return found == entries_.end() ? nullptr : &found->second;
}

ProgramsBySource::Entry* ProgramsBySource::Use(const Key& key) {
  Entry* const entry = Find(key);
  if (entry != nullptr) entry->used = ++uses_;
  return entry;
}

ProgramsBySource::Entry& ProgramsBySource::Add(const Key& key) {
  Entry entry = MakeEntry(key);
  entry.compiling = true;
  return entries_.try_emplace(key, std::move(entry)).first->second;
}

bool ProgramsBySource::AddShared(const Key& key, std::shared_ptr<const BoundProgram> program) {
  if (entries_.contains(key)) return false;
  Entry entry = MakeEntry(key);
  entry.future->Resolve(std::move(program));
  entry.shared = true;
  ++shared_;
  return entries_.try_emplace(key, std::move(entry)).second;
}

ProgramsBySource::Entry ProgramsBySource::MakeEntry(const Key& key) {
  Entry entry;
  entry.future = std::make_shared<ProgramFuture>();
  entry.used = ++uses_;
  const auto sibling = entries_.lower_bound({key.device, key.source, {}});
  if (sibling != entries_.end() && sibling->first.device == key.device &&
      sibling->first.source == key.source) {
    entry.variables = sibling->second.variables;
  }
  return entry;
}

void ProgramsBySource::EndCompiling(Entry* entry, bool shared) {
  entry->compiling = false;
  entry->payers = {};
  if (shared && !entry->shared) ++shared_;
  entry->shared = entry->shared || shared;
}

void ProgramsBySource::Erase(const Key& key) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return;
  if (found->second.shared) --shared_;
  entries_.erase(found);
}

ProgramsBySource::Dropped ProgramsBySource::EvictIdle() {
  Dropped dropped;
  const int64_t own = static_cast<int64_t>(entries_.size()) - shared_;
  if (own > limits_.idle_programs) Evict(false, own - limits_.idle_programs, &dropped);
  // Many at once, since each look for them goes through all.
  if (shared_ > limits_.idle_bindings) Evict(true, limits_.idle_bindings / 4, &dropped);
  return dropped;
}

ProgramsBySource::Dropped ProgramsBySource::Reclaim(int64_t bytes) {
  Dropped dropped;
  for (const auto& entry : Idle(false)) {
    if (bytes <= 0) break;
    const auto& result = entry->second.future->result();
    if (result.ok()) bytes -= (*result)->program->host_bytes();
    Drop(entry, &dropped);
  }
  return dropped;
}

std::vector<ProgramsBySource::Entries::iterator> ProgramsBySource::Idle(bool shared) {
  std::vector<Entries::iterator> idle;
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    // A count of one cannot grow meanwhile: whoever guards this table guards the only pointer.
    const std::shared_ptr<ProgramFuture>& future = entry->second.future;
    if (entry->second.shared == shared && future->resolved() && future.use_count() == 1)
      idle.push_back(entry);
  }
  std::sort(idle.begin(), idle.end(),
            [](const auto& a, const auto& b) { return a->second.used < b->second.used; });
  return idle;
}

void ProgramsBySource::Evict(bool shared, int64_t surplus, Dropped* dropped) {
  const auto idle = Idle(shared);
  for (size_t i = 0; i < std::min<size_t>(surplus, idle.size()); ++i) Drop(idle[i], dropped);
}

void ProgramsBySource::Drop(Entries::iterator entry, Dropped* dropped) {
  if (entry->second.shared) --shared_;
  dropped->push_back(std::move(entry->second));
  entries_.erase(entry);
}

}  // namespace kiln::runtime
