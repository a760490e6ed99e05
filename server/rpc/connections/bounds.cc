#include "server/rpc/connections/bounds.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "absl/strings/string_view.h"
#include "proto/check/check.h"

namespace kiln::rpc {
namespace {

// The limit of one connection.
int64_t BytesMax(const ConnectionBounds& bounds, const Traffic& traffic) {
  if (!traffic.accepted) return bounds.unknown_bytes_max;
  return bounds.call_bytes_max * (1 + traffic.open_calls);
}

// Sorts `all` by bytes, and adds those above their own limit, or above `together_max` together, to
// `beyond`.
void AddBeyond(const ConnectionBounds& bounds, int64_t together_max, std::vector<size_t> all,
               absl::Span<const Traffic> connections, std::vector<size_t>& beyond) {
  std::sort(all.begin(), all.end(),
            [&](size_t a, size_t b) { return connections[a].bytes < connections[b].bytes; });
  int64_t together = 0;
  for (const size_t each : all) {
    const Traffic& traffic = connections[each];
    const bool within =
        traffic.bytes <= BytesMax(bounds, traffic) && together + traffic.bytes <= together_max;
    if (within) {
      together += traffic.bytes;
    } else {
      beyond.push_back(each);
    }
  }
}

}  // namespace

std::vector<size_t> BeyondBounds(const ConnectionBounds& bounds,
                                 absl::Span<const Traffic> connections, size_t more_accepted) {
  std::vector<Traffic> judged(connections.begin(), connections.end());
  std::vector<size_t> strangers;
  std::vector<size_t> doubtful;
  std::vector<size_t> accepted;
  for (size_t i = 0; i < judged.size(); ++i) {
    if (judged[i].accepted) {
      accepted.push_back(i);
    } else {
      (judged[i].bytes > bounds.unknown_bytes_max ? doubtful : strangers).push_back(i);
    }
  }
  std::sort(doubtful.begin(), doubtful.end(),
            [&](size_t a, size_t b) { return judged[a].bytes < judged[b].bytes; });
  for (size_t i = 0; i < doubtful.size(); ++i) {
    judged[doubtful[i]].accepted = i < more_accepted;
    (i < more_accepted ? accepted : strangers).push_back(doubtful[i]);
  }
  KILN_CHECK_EQ(strangers.size() + accepted.size(), judged.size());
  std::vector<size_t> beyond;
  AddBeyond(bounds, bounds.unknown_bytes_together_max, std::move(strangers), judged, beyond);
  AddBeyond(bounds, bounds.bytes_together_max, std::move(accepted), judged, beyond);
  KILN_CHECK_LE(beyond.size(), connections.size());
  return beyond;
}

std::vector<size_t> BeyondCalls(const ConnectionBounds& bounds,
                                absl::Span<const Traffic> connections) {
  std::vector<size_t> all(connections.size());
  std::iota(all.begin(), all.end(), size_t{0});
  std::stable_sort(all.begin(), all.end(), [&](size_t a, size_t b) {
    return connections[a].open_calls < connections[b].open_calls;
  });
  std::map<absl::string_view, int64_t> together;  // by user
  std::vector<size_t> beyond;
  for (const size_t each : all) {
    int64_t& calls = together[connections[each].user];
    calls += connections[each].open_calls;
    if (calls > bounds.user_calls_max) beyond.push_back(each);
  }
  KILN_CHECK_LE(beyond.size(), connections.size());
  return beyond;
}

}  // namespace kiln::rpc
