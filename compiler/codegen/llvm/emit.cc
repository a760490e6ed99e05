#include "compiler/codegen/llvm/emit.h"

#include <memory>
#include <utility>
#include <vector>

#include "compiler/codegen/llvm/control.h"
#include "compiler/codegen/llvm/expression.h"
#include "compiler/codegen/llvm/matrix.h"
#include "compiler/codegen/llvm/ops.h"
#include "compiler/codegen/llvm/written.h"
#include "compiler/codegen/math/instructions.h"
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

class LoopEmitter {
 public:
  LoopEmitter(llvm::IRBuilder<>& builder, const schedule::LoopProgram& program, const Frame& frame,
              llvm::Function* function)
      : builder_(builder),
        program_(program),
        frame_(frame),
        folder_(*program.context),
        expressions_(builder, program, frame.prefers_narrow_integers()),
        control_(builder, function, expressions_) {}

  void EmitFunction() {
    builder_.SetInsertPoint(control_.NewBlock("entry"));
    LoadBases();
    if (program_.threads > 1 && frame_.has_matrix_unit()) {
      matrix_ =
          std::make_unique<MatrixEmitter>(builder_, expressions_, folder_, frame_.Thread(builder_));
    }
    frame_.RunTasks(builder_, control_, program_, [this](Value* task) { EmitTask(task); });
    builder_.CreateRetVoid();
  }

 private:
  void LoadBases() {
    Value* scratch = nullptr;
    Value* shared = nullptr;
    for (size_t i = 0; i < program_.buffers.size(); ++i) {
      const schedule::LoopBuffer& buffer = program_.buffers[i];
      const int number = static_cast<int>(i);
      if (buffer.space == Space::kGlobal) {
        if (!SectionsLoadArguments()) LoadArgument(number);
      } else if (buffer.space == Space::kScratch) {
        if (scratch == nullptr) scratch = frame_.Scratch(builder_, program_);
        expressions_.SetBase(number, builder_.CreateConstInBoundsGEP1_64(builder_.getInt8Ty(),
                                                                         scratch, buffer.offset));
      } else if (buffer.space == Space::kShared) {
        if (shared == nullptr) shared = frame_.Shared(builder_, program_);
        expressions_.SetBase(number, builder_.CreateConstInBoundsGEP1_64(builder_.getInt8Ty(),
                                                                         shared, buffer.offset));
      }
    }
  }

  // Returns whether each section loads its own arguments. Those of all sections together might not
  // fit the registers.
  bool SectionsLoadArguments() const {
    return program_.sections.size() > 1 && frame_.runs_one_task();
  }

  // Globals have the first numbers, which are those of the arguments.
  void LoadArgument(int number) { expressions_.SetBase(number, frame_.Argument(builder_, number)); }

  void EmitTask(Value* task) {
    int64_t first = 0;
    for (const schedule::Section& section : program_.sections) {
      const int64_t tasks = section.tasks();
      if (tasks == 0) continue;
      const bool only = first == 0 && tasks == program_.grid_size();
      EmitSection(section, task, first, tasks, only);
      first += tasks;
    }
  }

  void EmitSection(const schedule::Section& section, Value* task, int64_t first, int64_t tasks,
                   bool only) {
    if (only) {
      if (SectionsLoadArguments()) LoadArgumentsOf(section);
      BindGrid(section, task);
      EmitBody(section.body);
      return;
    }
    Value* number = builder_.CreateSub(task, Like(task, first));
    // Unsigned: the tasks of earlier sections, which are negative here, become too large.
    Value* ours = builder_.CreateICmpULT(number, Like(task, tasks));
    BasicBlock* inside = control_.NewBlock("section");
    BasicBlock* after = control_.NewBlock("next_section");
    builder_.CreateCondBr(ours, inside, after);
    const ExpressionEmitter::Slots before = expressions_.slots();
    expressions_.OpenScope(/*conditional=*/true);
    builder_.SetInsertPoint(inside);
    if (SectionsLoadArguments()) LoadArgumentsOf(section);
    BindGrid(section, number);
    EmitBody(section.body);
    builder_.CreateBr(after);
    expressions_.CloseScope();
    builder_.SetInsertPoint(after);
    // A section begins without the registers of earlier sections.
    expressions_.slots() = before;
  }

  void LoadArgumentsOf(const schedule::Section& section) {
    for (const int argument : UsedArguments(program_, section.body)) LoadArgument(argument);
  }

  // Returns a constant of the type of the task's number.
  static Value* Like(Value* number, int64_t value) {
    return llvm::ConstantInt::getSigned(number->getType(), value);
  }

  void BindGrid(const schedule::Section& section, Value* number) {
    for (size_t i = section.grid.size(); i-- > 0;) {
      // The innermost range is the lowest digit of the task's number. The outermost needs no
      // remainder, since the number is below the product of all.
      const Node* range = section.grid[i];
      Value* extent = Like(number, range->attr<ir::RangeAttr>().extent);
      Value* digit = i == 0 ? number : builder_.CreateURem(number, extent);
      expressions_.BindRange(range, builder_.CreateZExt(digit, builder_.getInt64Ty()));
      if (i != 0) number = builder_.CreateUDiv(number, extent);
    }
  }

  void EmitBody(const Body& body) {
    for (const Statement& statement : body) {
      std::visit([this](const auto& node) { EmitOne(node); }, statement.node);
    }
  }

  const Node* Resolve(const Node* node) { return folder_.Substitute(node, &constants_); }

  // Outside all loops of threads, only the first thread writes memory that threads share.
  void EmitOne(const Store& store) {
    if (program_.threads == 1 || inside_threads_ ||
        IsPrivate(program_.buffers[store.buffer].space)) {
      EmitStore(store);
      return;
    }
    Value* first = builder_.CreateIsNull(frame_.Thread(builder_));
    control_.InSomeThreads(first, [&] { EmitStore(store); });
  }

  void EmitStore(const Store& store) {
    const Node* valid = Resolve(store.valid);
    int64_t known;
    if (valid != nullptr && kernel::IsConstant(valid, &known)) {
      if (known == 0) return;
      valid = nullptr;
    }
    const Node* index = Resolve(store.index);
    const Node* value = Resolve(store.value);
    if (store.async && valid == nullptr && StartCopy(store.buffer, index, value)) return;
    expressions_.EmitStore(store.buffer, index, value, valid, store.streaming);
  }

  // Starts an asynchronous copy; returns false if the machine cannot make it.
  bool StartCopy(int buffer, const Node* index, const Node* value) {
    const auto copy = expressions_.FindCopy(buffer, index, value);
    if (!copy || !frame_.StartCopy(builder_, copy->to, copy->from, copy->bytes, copy->valid))
      return false;
    expressions_.Touch(buffer);
    has_copies_ = true;
    return true;
  }

  // Reduces over adjacent threads that exchange values: all of them get the result, and the first
  // writes it.
  void EmitOne(const schedule::ThreadReduce& reduce) {
    const Node* range = reduce.value->operand(1);
    const int64_t group = ir::ExtentOf(range);
    Value* member = builder_.CreateURem(frame_.Thread(builder_), builder_.getInt32(group));
    expressions_.BindRange(range, builder_.CreateZExt(member, builder_.getInt64Ty()));
    Value* value = expressions_.Emit(Resolve(reduce.value->operand(0)));
    for (int64_t distance = group / 2; distance >= 1; distance /= 2) {
      value = EmitCombine(builder_, reduce.value, value, ShuffleAny(value, distance));
    }
    control_.InSomeThreads(builder_.CreateIsNull(member), [&] {
      expressions_.EmitStoreOf(reduce.buffer, Resolve(reduce.index), value);
    });
  }

  // Shuffles values of any width up to 64 bits.
  Value* ShuffleAny(Value* value, int64_t distance) {
    llvm::Type* type = value->getType();
    const unsigned bits = type->getPrimitiveSizeInBits();
    Value* whole = builder_.CreateBitCast(value, builder_.getIntNTy(bits));
    const auto part = [&](Value* of) { return frame_.Shuffle(builder_, of, distance); };
    if (bits <= 32) {
      whole = part(builder_.CreateZExt(whole, builder_.getInt32Ty()));
      whole = builder_.CreateTrunc(whole, builder_.getIntNTy(bits));
    } else {
      Value* low = part(builder_.CreateTrunc(whole, builder_.getInt32Ty()));
      Value* high =
          part(builder_.CreateTrunc(builder_.CreateLShr(whole, 32), builder_.getInt32Ty()));
      whole =
          builder_.CreateOr(builder_.CreateZExt(low, whole->getType()),
                            builder_.CreateShl(builder_.CreateZExt(high, whole->getType()), 32));
    }
    return builder_.CreateBitCast(whole, type);
  }

  void EmitOne(const schedule::Barrier&) {
    if (has_copies_) frame_.WaitForCopies(builder_);
    frame_.Barrier(builder_);
    if (matrix_ != nullptr) matrix_->Forget();
  }

  void EmitOne(const schedule::Fetch& fetch) {
    if (frame_.has_prefetch()) expressions_.EmitFetch(fetch.buffer, Resolve(fetch.index));
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
        return EmitThreads(loop);
      case LoopKind::kMatrix:
        if (!EmitMatrix(loop)) EmitUnrolled(loop);
    }
  }

  // Returns whether the matrix unit computes the loop.
  bool EmitMatrix(const Loop& loop) {
    const auto step = schedule::FindMatrixStep(loop, program_);
    if (matrix_ == nullptr || !step || threads_.size() < 2) return false;
    return matrix_->Emit(*step, threads_[threads_.size() - 2], threads_.back(), unrolled_);
  }

  // Emits the body, for the threads that have an iteration.
  void EmitThreads(const Loop& loop) {
    Value* digit = frame_.Thread(builder_);
    if (loop.stride > 1) digit = builder_.CreateUDiv(digit, Like(digit, loop.stride));
    if (loop.places * loop.stride < program_.threads)
      digit = builder_.CreateURem(digit, Like(digit, loop.places));
    digit = builder_.CreateZExt(digit, builder_.getInt64Ty());
    const int64_t count = ir::ExtentOf(loop.range);
    Value* some = nullptr;
    if (const Node* extent = Resolve(loop.extent); extent != nullptr) {
      some = builder_.CreateICmpSLT(digit, expressions_.Emit(extent));
    } else if (count < loop.places) {
      some = builder_.CreateICmpSLT(digit, builder_.getInt64(count));
    }
    control_.InSomeThreads(some, [&] {
      const bool outside = !inside_threads_;
      inside_threads_ = true;
      threads_.push_back(loop.range);
      expressions_.BindRange(loop.range, digit);
      EmitBody(loop.body);
      threads_.pop_back();
      inside_threads_ = !outside;
    });
  }

  void EmitUnrolled(const Loop& loop) {
    const int64_t extent = loop.range->attr<ir::RangeAttr>().extent;
    const std::vector<std::pair<const Node*, const Node*>> outer = unrolled_;
    EmitSquares(loop);
    for (int64_t i = 0; i < extent; ++i) {
      unrolled_ = outer;
      unrolled_.emplace_back(loop.range, folder_.Int(i));
      // Started afresh: earlier substitutions hold the last iteration's constant.
      constants_ = kernel::ExpressionFolder::Map(unrolled_.begin(), unrolled_.end());
      EmitBody(loop.body);
    }
    unrolled_ = outer;
    constants_ = kernel::ExpressionFolder::Map(unrolled_.begin(), unrolled_.end());
  }

  // Where unrolled iterations read along memory and the lanes inside them across it, whole squares
  // are loaded at once and transposed; the iterations then find their loads already emitted.
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
      // An extent that is only known at run time may be 0.
      runs = kernel::IsConstant(extent, &known);
      if (known == 0) return;
    }
    control_.CountedLoop(builder_.getInt64(0), count, runs, WrittenRegisters(program_, loop.body),
                         [this, &loop](Value* index) {
                           expressions_.BindRange(loop.range, index);
                           EmitBody(loop.body);
                         });
  }

  llvm::IRBuilder<>& builder_;
  const schedule::LoopProgram& program_;
  const Frame& frame_;
  kernel::ExpressionFolder folder_;
  ExpressionEmitter expressions_;
  ControlFlow control_;
  std::unique_ptr<MatrixEmitter> matrix_;                      // null: no such unit
  bool has_copies_ = false;                                    // that a barrier has to wait for
  bool inside_threads_ = false;                                // inside a loop of threads
  std::vector<const Node*> threads_;                           // ranges of open loops of threads
  std::vector<std::pair<const Node*, const Node*>> unrolled_;  // ranges and their constants here
  kernel::ExpressionFolder::Map constants_;  // the same, and substitutions made with them
};

}  // namespace

std::unique_ptr<llvm::Module> EmitModule(llvm::LLVMContext& context,
                                         const schedule::LoopProgram& program,
                                         const drivers::Target& target, const Frame& frame,
                                         const std::string& symbol) {
  auto module = std::make_unique<llvm::Module>(symbol, context);
  llvm::IRBuilder<> builder(context);
  llvm::Function* function = frame.Declare(*module, program, symbol);
  function->addFnAttr(llvm::Attribute::NoUnwind);
  AllowInstructions(target, *function);
  LoopEmitter(builder, program, frame, function).EmitFunction();
  return module;
}

}  // namespace kiln::codegen
