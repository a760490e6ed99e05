#include "server/runtime/cache/programs_by_source.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "proto/check/check.h"

namespace kiln::runtime {
namespace {

// The end of an outdated entry's source.
constexpr char kOutdated[] = "\noutdated";

}  // namespace

ProgramsBySource::Entry* ProgramsBySource::Find(const Key& key) {
  const auto found = entries_.find(key);
  return found == entries_.end() ? nullptr : &found->second;
}

ProgramsBySource::Entry* ProgramsBySource::Use(const Key& key) {
  Entry* const entry = Find(key);
  if (entry != nullptr) {
    entry->used = ++uses_;
    entry->unused_since = absl::InfiniteFuture();
  }
  return entry;
}

ProgramsBySource::Entry& ProgramsBySource::Add(const Key& key) {
  Entry entry = MakeEntry(key);
  entry.compiling = true;
  const auto [added, is_new] = entries_.try_emplace(key, std::move(entry));
  KILN_CHECK(is_new) << key.source << " on " << key.device;
  KILN_VALIDATE(*this, entries_.size());
  return added->second;
}

bool ProgramsBySource::AddShared(const Key& key, std::shared_ptr<const BoundProgram> program) {
  if (entries_.contains(key)) return false;
  Entry entry = MakeEntry(key);
  entry.program = program;
  entry.future->Resolve(std::move(program));
  entry.shared = true;
  CountShared(key, 1);
  entries_.try_emplace(key, std::move(entry));
  KILN_VALIDATE(*this, entries_.size());
  return true;
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

ProgramsBySource::Dropped ProgramsBySource::EndCompiling(
    const Key& key, bool shared, std::shared_ptr<const BoundProgram> program) {
  const auto found = entries_.find(key);
  KILN_CHECK(found != entries_.end()) << key.source << " on " << key.device;
  Entry& entry = found->second;
  KILN_CHECK(entry.compiling) << key.source << " on " << key.device;
  entry.compiling = false;
  entry.program = std::move(program);
  entry.payers = {};
  entry.compile = nullptr;
  if (shared && !entry.shared) CountShared(key, 1);
  entry.shared = entry.shared || shared;
  Dropped replaced;
  if (const auto old = entries_.find(OutdatedKey(key));
      old != entries_.end() && IsIdle(old->second))
    Drop(old, &replaced);
  KILN_VALIDATE(*this, entries_.size());
  return replaced;
}

void ProgramsBySource::Erase(const Key& key) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return;
  if (found->second.shared) CountShared(key, -1);
  entries_.erase(found);
  KILN_VALIDATE(*this, entries_.size());
}

void ProgramsBySource::CountShared(const Key& key, int64_t more) {
  shared_ += more;
  const auto of = shared_of_.try_emplace({key.device, key.source}, 0).first;
  of->second += more;
  KILN_CHECK_GE(of->second, 0) << key.source << " on " << key.device;
  if (of->second == 0) shared_of_.erase(of);
}

void ProgramsBySource::Validate() const {
  std::map<Source, int64_t> shared_of;
  int64_t shared = 0;
  const Entries::value_type* sibling = nullptr;
  for (const auto& each : entries_) {
    const auto& [key, entry] = each;
    KILN_CHECK_NE(entry.future, nullptr) << key.source;
    KILN_CHECK_GT(entry.used, 0) << key.source;
    KILN_CHECK_LE(entry.used, uses_) << key.source;
    // Only what compiles keeps the task, which keeps the source and an account.
    KILN_CHECK(entry.compiling || entry.compile == nullptr) << key.source;
    KILN_CHECK(!entry.compiling || (!entry.shared && !entry.program)) << key.source;
    if (entry.shared) {
      ++shared;
      ++shared_of[{key.device, key.source}];
    }
    // ProgramCache sets it for the first entry of a source.
    const bool is_sibling = sibling != nullptr && sibling->first.device == key.device &&
                            sibling->first.source == key.source;
    KILN_CHECK(!is_sibling || entry.variables == sibling->second.variables) << key.source;
    sibling = &each;
  }
  KILN_CHECK_EQ(shared, shared_);
  KILN_CHECK(shared_of == shared_of_) << shared_of.size() << " and " << shared_of_.size();
}

ProgramsBySource::Dropped ProgramsBySource::EvictIdle() {
  Dropped dropped;
  const auto programs = static_cast<int64_t>(entries_.size() + shared_of_.size()) - shared_;
  int64_t surplus = programs - limits_.idle_programs;
  if (surplus > 0) {
    for (const IdleProgram& program : IdlePrograms()) {
      if (surplus-- == 0) break;
      for (const auto& entry : program.entries) Drop(entry, &dropped);
    }
  }
  if (shared_ > limits_.idle_bindings) {
    // Many at once, since each search for them goes through all entries.
    int64_t left = limits_.idle_bindings / 4;
    for (const auto& entry : IdleBindings()) {
      if (left-- == 0) break;
      Drop(entry, &dropped);
    }
  }
  KILN_VALIDATE(*this, entries_.size());
  return dropped;
}

ProgramsBySource::Dropped ProgramsBySource::Reclaim(int64_t bytes, const std::string& user) {
  Dropped dropped;
  for (const IdleProgram& program : IdlePrograms()) {
    if (bytes <= 0) break;
    if (!user.empty() && !IsOf(program.entries[0]->second, user)) continue;
    bytes -= program.bytes;
    for (const auto& entry : program.entries) Drop(entry, &dropped);
  }
  KILN_VALIDATE(*this, entries_.size());
  return dropped;
}

ProgramsBySource::Dropped ProgramsBySource::DropUnused(absl::Time now, absl::Duration limit) {
  for (auto& [key, entry] : entries_)
    entry.unused_since = IsIdle(entry) ? std::min(entry.unused_since, now) : absl::InfiniteFuture();
  Dropped dropped;
  for (const IdleProgram& program : IdlePrograms()) {
    const bool all_unused =
        std::all_of(program.entries.begin(), program.entries.end(),
                    [&](const auto& entry) { return entry->second.unused_since <= now - limit; });
    if (!all_unused) continue;
    for (const auto& entry : program.entries) Drop(entry, &dropped);
  }
  KILN_VALIDATE(*this, entries_.size());
  return dropped;
}

bool ProgramsBySource::HasOneOf(const Entry& entry,
                                const std::vector<std::shared_ptr<Program>>& programs) {
  return entry.program &&
         std::find(programs.begin(), programs.end(), entry.program->program) != programs.end();
}

std::vector<std::shared_ptr<VariablePrograms>> ProgramsBySource::VariablesOf(
    const std::vector<std::shared_ptr<Program>>& programs) const {
  std::vector<std::shared_ptr<VariablePrograms>> variables;
  for (const auto& [key, entry] : entries_)
    if (entry.variables && !entry.is_old && HasOneOf(entry, programs))
      variables.push_back(entry.variables);
  std::sort(variables.begin(), variables.end());
  variables.erase(std::unique(variables.begin(), variables.end()), variables.end());
  return variables;
}

void ProgramsBySource::ExtendTo(SettingsChange change) {
  for (auto& [key, entry] : entries_)
    if (!entry.compiling && !entry.is_old && !IsOutdated(key)) entry.last_change = change;
}

bool ProgramsBySource::IsOutdated(const Key& key) { return absl::EndsWith(key.source, kOutdated); }

ProgramsBySource::Key ProgramsBySource::OutdatedKey(Key key) {
  key.source += kOutdated;
  return key;
}

ProgramsBySource::Dropped ProgramsBySource::SetOutdated(
    const std::vector<std::shared_ptr<Program>>& programs) {
  Dropped dropped;
  std::vector<Entries::iterator> outdated;
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry)
    if (!entry->second.is_old && !IsOutdated(entry->first) && HasOneOf(entry->second, programs))
      outdated.push_back(entry);
  for (const auto entry : outdated) {
    const Key key = OutdatedKey(entry->first);
    if (const auto earlier = entries_.find(key); earlier != entries_.end()) Drop(earlier, &dropped);
    if (entry->second.shared) CountShared(entry->first, -1);
    // Its source's programs are for those who ask from now on.
    entry->second.variables = nullptr;
    auto node = entries_.extract(entry);
    node.key() = key;
    if (node.mapped().shared) CountShared(key, 1);
    entries_.insert(std::move(node));
  }
  KILN_VALIDATE(*this, entries_.size());
  return dropped;
}

bool ProgramsBySource::IsOf(const Entry& entry, const std::string& user) {
  const auto& result = entry.future->result();
  return result.ok() && (*result)->program && (*result)->program->UseBy(user);
}

bool ProgramsBySource::IsIdle(const Entry& entry) {
  // A count of one cannot grow meanwhile: the only reference is in this table, which the caller
  // guards.
  return entry.future->resolved() && entry.future.use_count() == 1;
}

std::vector<ProgramsBySource::IdleProgram> ProgramsBySource::IdlePrograms() {
  std::vector<IdleProgram> idle;
  IdleProgram bindings;  // of the current source
  bool all_idle = true;
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const auto& result = entry->second.future->result();
    const bool is_idle = IsIdle(entry->second);
    const int64_t bytes =
        is_idle && result.ok() && (*result)->program ? (*result)->program->host_bytes() : 0;
    if (entry->second.shared) {
      bindings.used = std::max(bindings.used, entry->second.used);
      bindings.bytes = std::max(bindings.bytes, bytes);
      bindings.entries.push_back(entry);
      all_idle = all_idle && is_idle;
    } else if (is_idle) {
      idle.push_back({entry->second.used, bytes, {entry}});
    }
    const auto next = std::next(entry);
    const bool is_last = next == entries_.end() || next->first.device != entry->first.device ||
                         next->first.source != entry->first.source;
    if (is_last) {
      if (all_idle && !bindings.entries.empty()) idle.push_back(std::move(bindings));
      bindings = {};
      all_idle = true;
    }
    entry = next;
  }
  std::sort(idle.begin(), idle.end(),
            [](const IdleProgram& a, const IdleProgram& b) { return a.used < b.used; });
  return idle;
}

std::vector<ProgramsBySource::Entries::iterator> ProgramsBySource::IdleBindings() {
  std::vector<Entries::iterator> idle;
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (entry->second.shared && IsIdle(entry->second)) idle.push_back(entry);
  }
  std::sort(idle.begin(), idle.end(),
            [](const auto& a, const auto& b) { return a->second.used < b->second.used; });
  return idle;
}

void ProgramsBySource::Drop(Entries::iterator entry, Dropped* dropped) {
  KILN_CHECK(!entry->second.compiling) << entry->first.source;
  if (entry->second.shared) CountShared(entry->first, -1);
  dropped->push_back(std::move(entry->second));
  entries_.erase(entry);
}

}  // namespace kiln::runtime
