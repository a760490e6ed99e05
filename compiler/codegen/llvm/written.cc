#include "compiler/codegen/llvm/written.h"

#include <algorithm>
#include <variant>

namespace kiln::codegen {
namespace {

using schedule::Branch;
using schedule::Loop;
using schedule::Statement;
using schedule::Store;

void CollectWritten(const schedule::LoopProgram& program, const std::vector<Statement>& body,
                    std::vector<int>* out) {
  for (const Statement& statement : body) {
    if (const auto* loop = std::get_if<Loop>(&statement.node)) {
      CollectWritten(program, loop->body, out);
    } else if (const auto* branch = std::get_if<Branch>(&statement.node)) {
      CollectWritten(program, branch->then_body, out);
      CollectWritten(program, branch->else_body, out);
    } else if (const auto* store = std::get_if<Store>(&statement.node)) {
      if (program.buffers[store->buffer].space == schedule::Space::kRegister)
        out->push_back(store->buffer);
    }
  }
}

}  // namespace

std::vector<int> WrittenRegisters(const schedule::LoopProgram& program,
                                  const std::vector<Statement>& body) {
  std::vector<int> written;
  CollectWritten(program, body, &written);
  std::sort(written.begin(), written.end());
  written.erase(std::unique(written.begin(), written.end()), written.end());
  return written;
}

}  // namespace kiln::codegen
