#include "server/sessions/operation.h"

#include <algorithm>

#include "server/errors/errors.h"

namespace kiln::sessions {
namespace {

constexpr int64_t kOverhead = 512;

template <typename T>
int64_t BytesOf(const std::vector<T>& values) {
  return static_cast<int64_t>(values.capacity() * sizeof(T));
}

int64_t BytesOf(const std::string& text) { return static_cast<int64_t>(text.capacity()); }

int64_t BytesOf(const std::vector<std::string>& texts) {
  int64_t bytes = static_cast<int64_t>(texts.capacity() * sizeof(std::string));
  for (const std::string& text : texts) bytes += BytesOf(text);
  return bytes;
}

int64_t BytesOf(const Place& place) {
  if (!place.placement) return BytesOf(place.device);
  int64_t bytes = kOverhead / 2 + BytesOf(place.placement->devices);
  for (const auto& axis : place.placement->mesh.axes) bytes += BytesOf(axis.name) + 16;
  for (const auto& axes : place.placement->spec) bytes += BytesOf(axes) + 24;
  return bytes;
}

struct Sizes {
  // A run holds two pointers for each tensor, and so does its entry in flight.
  int64_t operator()(const RunProgram& run) const {
    int64_t bytes = 5 * (BytesOf(run.inputs) + BytesOf(run.outputs));
    for (const auto& [name, value] : run.bindings) bytes += kOverhead / 4 + BytesOf(name);
    return bytes;
  }
  int64_t operator()(const Write& write) const {
    return BytesOf(write.data) + BytesOf(write.blobs) + BytesOf(write.type.shape) +
           BytesOf(write.place);
  }
  int64_t operator()(const Move& move) const { return BytesOf(move.place); }
  int64_t operator()(const DefineProgram& define) const {
    return BytesOf(define.name) + BytesOf(define.devices);
  }
  int64_t operator()(const Release& release) const {
    return BytesOf(release.handles) + BytesOf(release.blobs);
  }
  int64_t operator()(const DetachAs& detach) const {
    int64_t bytes = BytesOf(detach.name) + BytesOf(detach.tensors);
    for (const NamedHandle& tensor : detach.tensors) bytes += BytesOf(tensor.name);
    return bytes;
  }
  int64_t operator()(const Refused& refused) const { return BytesOf(refused.handles); }
  template <typename Small>
  int64_t operator()(const Small&) const {
    return 0;
  }
};

}  // namespace

int64_t SizeOf(const Operation& operation) { return kOverhead + std::visit(Sizes(), operation); }

int64_t GraphBytes(const Operation& operation) {
  const auto* define = std::get_if<DefineProgram>(&operation);
  return define != nullptr && define->graph.ok() ? (*define->graph)->bytes() : 0;
}

std::vector<uint64_t> NewHandles(const Operation& operation) {
  if (const auto* write = std::get_if<Write>(&operation)) return {write->handle};
  if (const auto* move = std::get_if<Move>(&operation)) return {move->handle};
  if (const auto* run = std::get_if<RunProgram>(&operation)) return run->outputs;
  return {};
}

uint64_t HighestHandle(const Operation& operation, uint64_t highest) {
  if (const auto* write = std::get_if<Write>(&operation)) return std::max(highest, write->handle);
  if (const auto* move = std::get_if<Move>(&operation)) return std::max(highest, move->handle);
  if (const auto* run = std::get_if<RunProgram>(&operation))
    for (const uint64_t output : run->outputs) highest = std::max(highest, output);
  return highest;
}

uint64_t HighestProgram(const Operation& operation, uint64_t highest) {
  const auto* define = std::get_if<DefineProgram>(&operation);
  return define == nullptr ? highest : std::max(highest, define->program);
}

int64_t SizeOf(const Answer& answer) {
  const int64_t error = answer.error.ok() ? 0 : errors::BytesOf(answer.error);
  return kOverhead + error + BytesOf(answer.digest);
}

}  // namespace kiln::sessions
