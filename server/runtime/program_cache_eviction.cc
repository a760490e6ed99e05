// Which programs the cache forgets.
#include <algorithm>
#include <utility>

#include "server/runtime/program_cache.h"

namespace kiln::runtime {
namespace {

bool Names(const ProgramFuture& future, const Program& program) {
  return future.resolved() && future.result().ok() && (*future.result())->program.get() == &program;
}

}  // namespace

void ProgramCache::EvictIdle() {
  const int64_t own = static_cast<int64_t>(by_source_.size()) - shared_;
  if (own > options_.max_idle_programs) EvictIdle(false, own - options_.max_idle_programs);
  // Many at once, since each look for them goes through all.
  if (shared_ > options_.max_idle_bindings) EvictIdle(true, options_.max_idle_bindings / 4);
}

std::vector<std::map<ProgramCache::Key, ProgramCache::Entry>::iterator> ProgramCache::Idle(
    bool shared) {
  std::vector<std::map<Key, Entry>::iterator> idle;
  for (auto entry = by_source_.begin(); entry != by_source_.end(); ++entry) {
    if (entry->second.shared != shared) continue;
    if (IsIdle(std::get<0>(entry->first), entry->second.future)) idle.push_back(entry);
  }
  std::sort(idle.begin(), idle.end(),
            [](const auto& a, const auto& b) { return a->second.used < b->second.used; });
  return idle;
}

void ProgramCache::EvictIdle(bool shared, int64_t surplus) {
  const auto idle = Idle(shared);
  for (size_t i = 0; i < std::min<size_t>(surplus, idle.size()); ++i) Forget(idle[i]);
}

void ProgramCache::Reclaim(int64_t bytes) {
  std::vector<std::shared_ptr<ProgramFuture>> dropped;  // outlives the lock: programs unload
  absl::MutexLock lock(&mutex_);
  for (const auto& entry : Idle(false)) {
    if (bytes <= 0) return;
    dropped.push_back(entry->second.future);
    if (dropped.back()->result().ok()) bytes -= (*dropped.back()->result())->program->host_bytes();
    Forget(entry);
  }
}

bool ProgramCache::IsIdle(const std::string& device,
                          const std::shared_ptr<ProgramFuture>& future) const {
  if (!future->resolved()) return false;
  int own = 1;  // by_source_'s; of the sources that share a digest, by_digest_ names one
  if (future->result().ok()) {
    const auto named =
        by_digest_.find({device, (*future->result())->program->description().digest});
    if (named != by_digest_.end() && named->second == future) ++own;
  }
  return future.use_count() <= own;
}

void ProgramCache::Forget(std::map<Key, Entry>::iterator entry) {
  const Key key = entry->first;
  const std::shared_ptr<ProgramFuture> future = std::move(entry->second.future);
  if (entry->second.shared) --shared_;
  by_source_.erase(entry);
  ForgetGeneral(key);
  if (future->result().ok()) DropUnnamed(std::get<0>(key), (*future->result())->program);
}

void ProgramCache::ForgetGeneral(const Key& key) {
  const auto& [device, source, bindings] = key;
  const auto next = by_source_.lower_bound(Key(device, source, Bindings()));
  const bool left = next != by_source_.end() && std::get<0>(next->first) == device &&
                    std::get<1>(next->first) == source;
  if (left) return;
  std::vector<std::shared_ptr<GeneralFuture>> dropped;
  for (auto general = generals_.lower_bound(GeneralKey(device, source, {}));
       general != generals_.end() && std::get<0>(general->first) == device &&
       std::get<1>(general->first) == source;) {
    dropped.push_back(std::move(general->second));
    general = generals_.erase(general);
  }
  for (const auto& general : dropped) {
    if (general->resolved() && general->result().ok()) {
      DropUnnamed(device, (*general->result())->program);
    }
  }
}

void ProgramCache::DropUnnamed(const std::string& device, const std::shared_ptr<Program>& program) {
  for (const auto& [key, general] : generals_) {
    const bool names =
        general->resolved() && general->result().ok() && (*general->result())->program == program;
    if (names) return;
  }
  for (const auto& [key, other] : by_source_) {
    if (Names(*other.future, *program)) return;
  }
  const auto named = by_digest_.find({device, program->description().digest});
  if (named != by_digest_.end() && Names(*named->second, *program)) by_digest_.erase(named);
}

}  // namespace kiln::runtime
