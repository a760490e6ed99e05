#include "compiler/partition/dependencies.h"

#include <algorithm>

namespace kiln::partition {

bool Dependencies::Test(const Bits& bits, int i) const {
  const size_t word = static_cast<size_t>(i) / 64;
  return word < bits.size() && (bits[word] >> (i % 64) & 1) != 0;
}

void Dependencies::Set(Bits& bits, int i) {
  const size_t word = static_cast<size_t>(i) / 64;
  if (bits.size() <= word) bits.resize(word + 1, 0);
  bits[word] |= uint64_t{1} << (i % 64);
}

void Dependencies::Clear(Bits& bits, int i) {
  const size_t word = static_cast<size_t>(i) / 64;
  if (word < bits.size()) bits[word] &= ~(uint64_t{1} << (i % 64));
}

void Dependencies::Unite(Bits& into, const Bits& from) {
  if (into.size() < from.size()) into.resize(from.size(), 0);
  for (size_t i = 0; i < from.size(); ++i) into[i] |= from[i];
}

void Dependencies::AddCluster() { needs_.emplace_back(); }

bool Dependencies::Reaches(int from, int to) const { return Test(needs_[from], to); }

void Dependencies::AddEdge(int from, int to) {
  if (from == to || Test(needs_[from], to)) return;
  Bits added = needs_[to];
  Set(added, to);
  Unite(needs_[from], added);
  for (Bits& needs : needs_) {
    if (Test(needs, from)) Unite(needs, added);
  }
}

void Dependencies::Merge(int from, int into) {
  Unite(needs_[into], needs_[from]);
  Clear(needs_[into], into);
  Clear(needs_[into], from);
  needs_[from].clear();
  Bits both = needs_[into];
  Set(both, into);
  for (Bits& needs : needs_) {
    if (Test(needs, from) || Test(needs, into)) Unite(needs, both);
  }
}

}  // namespace kiln::partition
