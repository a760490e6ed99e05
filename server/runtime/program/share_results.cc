#include "server/runtime/program/share_results.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "proto/check/check.h"

namespace kiln::runtime {
namespace {

// Returns the result whose whole buffer `argument` is, if any.
std::optional<int> ResultOf(const Signature& signature, const compiler::CompiledProgram& program,
                            const compiler::Argument& argument) {
  const compiler::Slot& slot = program.slots[argument.slot];
  const bool is_whole = argument.offset == 0 && argument.bytes == slot.bytes;
  if (!is_whole) return std::nullopt;
  if (slot.kind == compiler::Slot::Kind::kOutput) return slot.index;
  if (slot.kind == compiler::Slot::Kind::kUpdate)
    return static_cast<int>(signature.outputs.size()) + slot.index;
  return std::nullopt;
}

}  // namespace

std::vector<int> ShareResults(const Signature& signature, compiler::CompiledProgram* program) {
  const size_t outputs = signature.outputs.size();
  std::vector<int> same(outputs + signature.updates.size());
  std::iota(same.begin(), same.end(), 0);
  const auto type = [&](int result) -> const buffers::TensorType& {
    const auto index = static_cast<size_t>(result);
    return index < outputs ? *signature.outputs[index] : *signature.updates[index - outputs];
  };
  std::erase_if(program->copies, [&](const compiler::CompiledProgram::Copy& copy) {
    const std::optional<int> from = ResultOf(signature, *program, copy.source);
    const std::optional<int> to = ResultOf(signature, *program, copy.destination);
    if (!from || !to || !(type(*from) == type(*to))) return false;
    // The first of all equal results represents them.
    const int one = std::min(same[*from], same[*to]), other = std::max(same[*from], same[*to]);
    std::replace(same.begin(), same.end(), other, one);
    return true;
  });
  for (size_t i = 0; i < same.size(); ++i) {
    // Each one's representative is an earlier result, or itself, and represents itself.
    KILN_CHECK_LE(same[i], i);
    KILN_CHECK_EQ(same[static_cast<size_t>(same[i])], same[i]) << "result " << i;
  }
  return same;
}

}  // namespace kiln::runtime
