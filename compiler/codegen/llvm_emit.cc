#include "compiler/codegen/llvm_emit.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "compiler/codegen/instructions.h"
#include "compiler/codegen/llvm_control.h"
#include "compiler/codegen/llvm_expression.h"
#include "compiler/codegen/llvm_ops.h"
#include "compiler/ir/walk.h"
#include "compiler/kernel/expression_folder.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Module.h"

namespace kiln::codegen {
namespace {

using ir::Node;
using llvm::BasicBlock;
using llvm::Value;
using schedule::Branch;
using schedule::Loop;
using schedule::LoopKind;
using schedule::Space;
using schedule::Statement;
using schedule::Store;

using Body = std::vector<Statement>;

// The buffers in registers that a body sets.
void CollectWritten(const schedule::LoopProgram& program, const Body& body, std::vector<int>* out) {
  for (const Statement& statement : body) {
    if (const auto* loop = std::get_if<Loop>(&statement.node)) {
      CollectWritten(program, loop->body, out);
    } else if (const auto* branch = std::get_if<Branch>(&statement.node)) {
      CollectWritten(program, branch->then_body, out);
      CollectWritten(program, branch->else_body, out);
    } else if (const auto* store = std::get_if<Store>(&statement.node)) {
      if (program.buffers[store->buffer].space == Space::kRegister) out->push_back(store->buffer);
    }
  }
}

std::vector<int> Written(const schedule::LoopProgram& program, const Body& body) {
  std::vector<int> written;
  CollectWritten(program, body, &written);
  std::sort(written.begin(), written.end());
  written.erase(std::unique(written.begin(), written.end()), written.end());
  return written;
}

class LoopEmitter {
 public:
  LoopEmitter(llvm::IRBuilder<>& builder, const schedule::LoopProgram& program,
              llvm::Function* function)
      : builder_(builder),
        program_(program),
        function_(function),
        folder_(*program.context),
        expressions_(builder, program),
        control_(builder, function, expressions_) {}

  void EmitFunction() {
    builder_.SetInsertPoint(control_.NewBlock("entry"));
    LoadBases();
    EmitTasks();
    builder_.CreateRetVoid();
  }

 private:
  void LoadBases() {
    llvm::Type* pointer = builder_.getPtrTy();
    for (size_t i = 0; i < program_.buffers.size(); ++i) {
      const schedule::LoopBuffer& buffer = program_.buffers[i];
      if (buffer.space == Space::kGlobal) {
        // Globals have the first numbers, which are those of the arguments.
        Value* slot = builder_.CreateConstInBoundsGEP1_64(pointer, function_->getArg(0), i);
        expressions_.SetBase(static_cast<int>(i), builder_.CreateLoad(pointer, slot));
      } else if (buffer.space == Space::kScratch) {
        expressions_.SetBase(static_cast<int>(i),
                             builder_.CreateConstInBoundsGEP1_64(
                                 builder_.getInt8Ty(), function_->getArg(3), buffer.offset));
      }
    }
  }

  // for (task = begin; task < end; ++task)
  void EmitTasks() {
    control_.CountedLoop(function_->getArg(1), function_->getArg(2), /*runs=*/false, {},
                         [this](Value* task) {
                           int64_t first = 0;
                           for (const schedule::Section& section : program_.sections) {
                             const int64_t tasks = section.tasks();
                             if (tasks == 0) continue;
                             const bool only = first == 0 && tasks == program_.grid_size();
                             EmitSection(section, task, first, tasks, only);
                             first += tasks;
                           }
                         });
  }

  void EmitSection(const schedule::Section& section, Value* task, int64_t first, int64_t tasks,
                   bool only) {
    if (only) {
      BindGrid(section, task);
      EmitBody(section.body);
      return;
    }
    Value* number = builder_.CreateSub(task, builder_.getInt64(first));
    // Unsigned: the tasks of earlier sections, which are negative here, become too large.
    Value* ours = builder_.CreateICmpULT(number, builder_.getInt64(tasks));
    BasicBlock* inside = control_.NewBlock("section");
    BasicBlock* after = control_.NewBlock("next_section");
    builder_.CreateCondBr(ours, inside, after);
    expressions_.OpenScope(/*conditional=*/true);
    builder_.SetInsertPoint(inside);
    BindGrid(section, number);
    EmitBody(section.body);
    builder_.CreateBr(after);
    expressions_.CloseScope();
    builder_.SetInsertPoint(after);
  }

  void BindGrid(const schedule::Section& section, Value* number) {
    for (size_t i = section.grid.size(); i-- > 0;) {
      // The innermost range is the last digit of the task's number. The outermost needs no
      // remainder, as the number is below the product of all.
      const Node* range = section.grid[i];
      Value* extent = builder_.getInt64(range->attr<ir::RangeAttr>().extent);
      expressions_.BindRange(range, i == 0 ? number : builder_.CreateURem(number, extent));
      if (i != 0) number = builder_.CreateUDiv(number, extent);
    }
  }

  void EmitBody(const Body& body) {
    for (const Statement& statement : body) {
      std::visit([this](const auto& node) { EmitOne(node); }, statement.node);
    }
  }

  const Node* Resolve(const Node* node) { return folder_.Substitute(node, &constants_); }

  void EmitOne(const Store& store) {
    const Node* valid = Resolve(store.valid);
    int64_t known;
    if (valid != nullptr && kernel::IsConstant(valid, &known)) {
      if (known == 0) return;
      valid = nullptr;
    }
    expressions_.EmitStore(store.buffer, Resolve(store.index), Resolve(store.value), valid,
                           store.streaming);
  }

  // These two do not stand where a task is one thread.
  void EmitOne(const schedule::ThreadReduce&) {}
  void EmitOne(const schedule::Barrier&) {}

  void EmitOne(const schedule::Fetch& fetch) {
    expressions_.EmitFetch(fetch.buffer, Resolve(fetch.index));
  }

  void EmitOne(const Branch& branch) {
    const Node* condition = Resolve(branch.condition);
    int64_t known;
    if (kernel::IsConstant(condition, &known)) {
      EmitBody(known != 0 ? branch.then_body : branch.else_body);
      return;
    }
    Value* value = expressions_.Emit(condition);
    control_.Branch(
        value, [&] { EmitBody(branch.then_body); }, [&] { EmitBody(branch.else_body); });
  }

  void EmitOne(const Loop& loop) {
    switch (loop.kind) {
      case LoopKind::kUnrolled:
        return EmitUnrolled(loop);
      case LoopKind::kVector:
        return EmitVector(loop);
      case LoopKind::kSerial:
        return EmitSerial(loop);
      case LoopKind::kThread:
        break;  // not where a task is one thread
    }
  }

  void EmitUnrolled(const Loop& loop) {
    const int64_t extent = loop.range->attr<ir::RangeAttr>().extent;
    const std::vector<std::pair<const Node*, const Node*>> outer = unrolled_;
    EmitSquares(loop);
    for (int64_t i = 0; i < extent; ++i) {
      unrolled_ = outer;
      unrolled_.emplace_back(loop.range, folder_.Int(i));
      // Begun anew: what was substituted before holds the last iteration's constant.
      constants_ = kernel::ExpressionFolder::Map(unrolled_.begin(), unrolled_.end());
      EmitBody(loop.body);
    }
    unrolled_ = outer;
    constants_ = kernel::ExpressionFolder::Map(unrolled_.begin(), unrolled_.end());
  }

  // Where unrolled iterations read along memory and the lanes inside them go across it, whole
  // squares are read at once and transposed; the iterations then find their loads done.
  void EmitSquares(const Loop& loop) {
    const Loop* lanes = loop.body.size() == 1 ? std::get_if<Loop>(&loop.body[0].node) : nullptr;
    if (lanes == nullptr || lanes->kind != LoopKind::kVector ||
        lanes->range->attr<ir::RangeAttr>().extent != loop.range->attr<ir::RangeAttr>().extent) {
      return;
    }
    std::vector<const Node*> values;
    for (const Statement& statement : lanes->body) {
      if (const auto* store = std::get_if<Store>(&statement.node)) values.push_back(store->value);
    }
    expressions_.BindLanes(lanes->range);
    for (const Node* node : ir::TopologicalOrder(values)) {
      if (node->op() != ir::Op::kLoad) continue;
      std::vector<const Node*> rows;
      for (int64_t i = 0; i < loop.range->attr<ir::RangeAttr>().extent; ++i) {
        kernel::ExpressionFolder::Map memo(unrolled_.begin(), unrolled_.end());
        memo[loop.range] = folder_.Int(i);
        rows.push_back(folder_.Substitute(node, &memo));
      }
      expressions_.EmitSquare(rows);
    }
    expressions_.UnbindLanes(lanes->range);
  }

  void EmitVector(const Loop& loop) {
    expressions_.BindLanes(loop.range);
    EmitBody(loop.body);
    expressions_.UnbindLanes(loop.range);
  }

  void EmitSerial(const Loop& loop) {
    const Node* extent = Resolve(loop.extent);
    Value* count = builder_.getInt64(loop.range->attr<ir::RangeAttr>().extent);
    bool runs = true;
    int64_t known = 1;
    if (extent != nullptr) {
      count = expressions_.Emit(extent);
      // An extent that is only known when the loop is reached may be 0.
      runs = kernel::IsConstant(extent, &known);
      if (known == 0) return;
    }
    control_.CountedLoop(builder_.getInt64(0), count, runs, Written(program_, loop.body),
                         [this, &loop](Value* index) {
                           expressions_.BindRange(loop.range, index);
                           EmitBody(loop.body);
                         });
  }

  llvm::IRBuilder<>& builder_;
  const schedule::LoopProgram& program_;
  llvm::Function* const function_;
  kernel::ExpressionFolder folder_;
  ExpressionEmitter expressions_;
  ControlFlow control_;
  std::vector<std::pair<const Node*, const Node*>> unrolled_;  // ranges and their constants here
  kernel::ExpressionFolder::Map constants_;  // the same, and what was substituted with them
};

}  // namespace

std::unique_ptr<llvm::Module> EmitModule(llvm::LLVMContext& context,
                                         const schedule::LoopProgram& program,
                                         const drivers::Target& target, const std::string& symbol) {
  auto module = std::make_unique<llvm::Module>(symbol, context);
  llvm::IRBuilder<> builder(context);
  llvm::Type* pointer = builder.getPtrTy();
  llvm::Type* integer = builder.getInt64Ty();
  // As kernel_image.h has it: the buffers' addresses, the first task and the end, scratch. Scratch
  // is the thread's own, so nothing else points into it.
  auto* type = llvm::FunctionType::get(builder.getVoidTy(), {pointer, integer, integer, pointer},
                                       /*isVarArg=*/false);
  auto* function =
      llvm::Function::Create(type, llvm::Function::ExternalLinkage, symbol, module.get());
  function->addFnAttr(llvm::Attribute::NoUnwind);
  function->addParamAttr(3, llvm::Attribute::NoAlias);
  function->addParamAttr(3, llvm::Attribute::getWithAlignment(context, llvm::Align(64)));
  AllowInstructions(target, *function);
  LoopEmitter(builder, program, function).EmitFunction();
  return module;
}

}  // namespace kiln::codegen
