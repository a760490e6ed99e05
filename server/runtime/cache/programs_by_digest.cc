#include "server/runtime/cache/programs_by_digest.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler/ir/quoted.h"
#include "proto/check/check.h"
#include "proto/digest/sha256.h"
#include "server/errors/errors.h"

namespace kiln::runtime {
namespace {

// The text of a graph includes its mesh and the placement of inputs and outputs.
std::string DigestOf(const graph::Graph& graph, const ProgramRequest& request) {
  std::string text =
      absl::StrCat(graph::Print(graph), "\n", request.device->info().target.CacheKey());
  for (size_t i = 1; i < request.members.size(); ++i)
    absl::StrAppend(&text, "\n", request.members[i]->info().target.CacheKey());
  if (!request.owner.empty()) absl::StrAppend(&text, "\nof the user ", request.owner);
  return Sha256Hex(text);
}

bool IsNamedBy(const Program::Description& description, const std::string& prefix) {
  return absl::StartsWith(description.digest, prefix) ||
         absl::StartsWith(description.source_key, prefix);
}

}  // namespace

void ProgramsByDigest::GetOrCompile(const ProgramRequest& request, const graph::Graph& graph,
                                    const std::shared_ptr<ProgramFuture>& future,
                                    const Done& done) {
  request.first_call->Begin("digest_graph");
  const Key key = {request.DeviceNames(), DigestOf(graph, request)};
  std::shared_ptr<Program> known;
  std::shared_ptr<ProgramFuture> other;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = entries_.find(key);
    if (found != entries_.end()) known = found->second.program.lock();
  }
  if (known && HasOtherSettings(*known, request)) {
    if (!request.is_old) Supersede({known});
    known = nullptr;
  }
  if (!known && request.is_old) return CompileBeside(request, graph, key.second, done);
  if (!known) {
    absl::MutexLock lock(&mutex_);
    Entry& entry = entries_[key];
    known = entry.program.lock();
    other = entry.compiling;
    if (!known && !other) {
      entry.compiling = future;
      std::erase_if(entries_, [](const auto& each) { return each.second.is_dead(); });
    }
    KILN_VALIDATE(*this, entries_.size());
  }
  if (known) return done(Bound(std::move(known)));
  if (other) return Await(other, request, graph, future, done);
  auto program = compiler_->Compile(request, graph, key.second);
  EndCompiling(key, program);
  if (!program.ok()) return done(program.status());
  done(Bound(*std::move(program)));
}

void ProgramsByDigest::CompileBeside(const ProgramRequest& request, const graph::Graph& graph,
                                     const std::string& digest, const Done& done) {
  auto program = compiler_->Compile(request, graph, digest);
  if (!program.ok()) return done(program.status());
  {
    absl::MutexLock lock(&mutex_);
    std::erase_if(superseded_, [](const auto& each) { return each.expired(); });
    superseded_.push_back(*program);
  }
  done(Bound(*std::move(program)));
}

bool ProgramsByDigest::HasOtherSettings(const Program& program,
                                        const ProgramRequest& request) const {
  return program.description().settings != request.settings &&
         compiler_->IsOutdated(program, request.settings);
}

void ProgramsByDigest::Await(const std::shared_ptr<ProgramFuture>& other,
                             const ProgramRequest& request, const graph::Graph& graph,
                             const std::shared_ptr<ProgramFuture>& future, const Done& done) {
  const auto take = [this, other, request, graph, future, done] {
    const auto& result = other->result();
    // A program for all values has another signature, and is for another graph.
    const bool is_other = result.ok() && ((*result)->variables != nullptr ||
                                          HasOtherSettings(*(*result)->program, request));
    if (!is_other && !LacksHostMemory(result.status())) return done(result);
    // In the account's own turn: this thread works for the account that failed.
    threads_->Schedule(request.payer.account().get(), [this, request, graph, future, done] {
      if (absl::Status status = threads_->status(); !status.ok()) return done(status);
      GetOrCompile(request, graph, future, done);
    });
  };
  if (!other->AddWaiter(take)) take();
}

void ProgramsByDigest::EndCompiling(const Key& key,
                                    const absl::StatusOr<std::shared_ptr<Program>>& program) {
  absl::MutexLock lock(&mutex_);
  const auto entry = entries_.find(key);
  KILN_CHECK(entry != entries_.end() && entry->second.compiling != nullptr) << key.second;
  // Failures are not kept: a lack of memory or of a file may have passed the next time.
  if (!program.ok()) {
    entries_.erase(entry);
  } else {
    KILN_CHECK_NE(*program, nullptr) << key.second;
    entry->second = {nullptr, *program};
  }
  KILN_VALIDATE(*this, entries_.size());
}

void ProgramsByDigest::Supersede(const std::vector<std::shared_ptr<Program>>& programs) {
  absl::MutexLock lock(&mutex_);
  std::erase_if(superseded_, [](const auto& program) { return program.expired(); });
  for (auto& [key, entry] : entries_) {
    if (std::find(programs.begin(), programs.end(), entry.program.lock()) == programs.end())
      continue;
    superseded_.push_back(std::exchange(entry.program, {}));
  }
  KILN_VALIDATE(*this, entries_.size());
}

void ProgramsByDigest::Validate() const {
  for (const auto& [key, entry] : entries_) {
    KILN_CHECK(!key.first.empty() && !key.second.empty());
    // A program is compiled again only after the last one was dropped.
    KILN_CHECK(entry.compiling == nullptr || entry.program.expired()) << key.second;
  }
}

std::vector<std::shared_ptr<Program>> ProgramsByDigest::List() const {
  std::vector<std::shared_ptr<Program>> programs;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [key, entry] : entries_) {
      if (auto program = entry.program.lock()) programs.push_back(std::move(program));
    }
    for (const auto& each : superseded_)
      if (auto program = each.lock()) programs.push_back(std::move(program));
  }
  std::stable_sort(programs.begin(), programs.end(), [](const auto& a, const auto& b) {
    return a->description().compiled < b->description().compiled;
  });
  return programs;
}

absl::StatusOr<std::shared_ptr<Program>> ProgramsByDigest::Find(const std::string& prefix) const {
  return FindByPrefix(List(), prefix);
}

absl::StatusOr<std::shared_ptr<Program>> FindByPrefix(
    const std::vector<std::shared_ptr<Program>>& programs, const std::string& prefix) {
  std::shared_ptr<Program> found;
  for (const auto& program : programs) {
    const Program::Description& description = program->description();
    if (!IsNamedBy(description, prefix)) continue;
    // A graph has the same digest on other devices, or on the same ones in another order.
    if (found && found->description().digest == description.digest) {
      if (found->description().compiled < description.compiled) found = program;
      continue;
    }
    if (found) {
      return errors::WithReason(
          absl::InvalidArgumentError(absl::StrCat(
              Quoted(prefix), " is the beginning of several programs' digests; use more digits")),
          "AMBIGUOUS_PROGRAM");
    }
    found = program;
  }
  if (found) return found;
  return errors::WithReason(
      absl::NotFoundError(absl::StrCat("no loaded program's digest begins with ", Quoted(prefix))),
      "UNKNOWN_PROGRAM", {{"program", prefix}});
}

int64_t ProgramsByDigest::size() const {
  absl::MutexLock lock(&mutex_);
  return std::count_if(entries_.begin(), entries_.end(),
                       [](const auto& each) { return !each.second.is_dead(); }) +
         std::count_if(superseded_.begin(), superseded_.end(),
                       [](const auto& program) { return !program.expired(); });
}

}  // namespace kiln::runtime
