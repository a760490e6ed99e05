#include "tests/numerics/kernels/serial_depth.h"

#include <algorithm>
#include <bit>
#include <vector>

namespace kiln::numerics {
namespace {

using schedule::LoopKind;
using schedule::Statement;

int64_t DepthOf(const std::vector<Statement>& body);

int64_t DepthOf(const Statement& statement) {
  if (const auto* loop = std::get_if<schedule::Loop>(&statement.node)) {
    const bool at_once = loop->kind == LoopKind::kThread || loop->kind == LoopKind::kVector;
    return (at_once ? 1 : ir::ExtentOf(loop->range)) * DepthOf(loop->body);
  }
  if (const auto* branch = std::get_if<schedule::Branch>(&statement.node)) {
    return std::max(DepthOf(branch->then_body), DepthOf(branch->else_body));
  }
  if (const auto* reduce = std::get_if<schedule::ThreadReduce>(&statement.node)) {
    const auto threads = static_cast<uint64_t>(ir::ExtentOf(reduce->value->operand(1)));
    return std::bit_width(threads);
  }
  return std::holds_alternative<schedule::Store>(statement.node) ? 1 : 0;
}

int64_t DepthOf(const std::vector<Statement>& body) {
  int64_t depth = 0;
  for (const Statement& statement : body) depth += DepthOf(statement);
  return depth;
}

}  // namespace

int64_t SerialDepth(const schedule::LoopProgram& program) {
  int64_t depth = 0;
  for (const schedule::Section& section : program.sections) {
    depth = std::max(depth, DepthOf(section.body));
  }
  return depth;
}

}  // namespace kiln::numerics
