#include "compiler/codegen/llvm/written.h"

#include <algorithm>
#include <initializer_list>
#include <variant>

#include "compiler/ir/walk.h"

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

void CollectArguments(const schedule::LoopProgram& program, const std::vector<Statement>& body,
                      std::vector<int>* out) {
  const auto use = [&](int buffer) {
    if (program.buffers[buffer].space == schedule::Space::kGlobal) out->push_back(buffer);
  };
  const auto read = [&](std::initializer_list<const ir::Node*> roots) {
    for (const ir::Node* root : roots) {
      if (root == nullptr) continue;
      for (const ir::Node* node : ir::TopologicalOrder({&root, 1})) {
        if (node->op() == ir::Op::kLoad) use(static_cast<int>(node->attr<ir::IntAttr>().value));
      }
    }
  };
  for (const Statement& statement : body) {
    if (const auto* loop = std::get_if<Loop>(&statement.node)) {
      read({loop->extent});
      CollectArguments(program, loop->body, out);
    } else if (const auto* branch = std::get_if<Branch>(&statement.node)) {
      read({branch->condition});
      CollectArguments(program, branch->then_body, out);
      CollectArguments(program, branch->else_body, out);
    } else if (const auto* store = std::get_if<Store>(&statement.node)) {
      use(store->buffer);
      read({store->index, store->value, store->valid});
    } else if (const auto* reduce = std::get_if<schedule::ThreadReduce>(&statement.node)) {
      use(reduce->buffer);
      read({reduce->index, reduce->value});
    } else if (const auto* fetch = std::get_if<schedule::Fetch>(&statement.node)) {
      use(fetch->buffer);
      read({fetch->index});
    }
  }
}

void MakeUnique(std::vector<int>* numbers) {
  std::sort(numbers->begin(), numbers->end());
  numbers->erase(std::unique(numbers->begin(), numbers->end()), numbers->end());
}

}  // namespace

std::vector<int> WrittenRegisters(const schedule::LoopProgram& program,
                                  const std::vector<Statement>& body) {
  std::vector<int> written;
  CollectWritten(program, body, &written);
  MakeUnique(&written);
  return written;
}

std::vector<int> UsedArguments(const schedule::LoopProgram& program,
                               const std::vector<Statement>& body) {
  std::vector<int> used;
  CollectArguments(program, body, &used);
  MakeUnique(&used);
  return used;
}

}  // namespace kiln::codegen
