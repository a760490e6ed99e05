// Expressions of a loop program as LLVM values.
#ifndef KILN_COMPILER_CODEGEN_LLVM_EXPRESSION_H_
#define KILN_COMPILER_CODEGEN_LLVM_EXPRESSION_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/codegen/llvm/scopes.h"
#include "compiler/kernel/expression_folder.h"
#include "compiler/kernel/index_sum.h"
#include "compiler/schedule/loop_program.h"
#include "llvm/IR/IRBuilder.h"

namespace kiln::codegen {

// Emits values once each, at the right place of the open scopes.
class ExpressionEmitter {
 public:
  // `narrow`: index arithmetic that fits into 32 bits uses 32 bits.
  ExpressionEmitter(llvm::IRBuilder<>& builder, const schedule::LoopProgram& program, bool narrow);

  // Scopes. OpenScope requires that the builder is in the block from which the new scope is
  // entered. The jump is emitted afterwards.
  void OpenScope(bool conditional);
  void CloseScope();
  int level() const { return static_cast<int>(scopes_.size()) - 1; }
  void BindRange(const ir::Node* range, llvm::Value* value);
  void BindLanes(const ir::Node* range);
  void UnbindLanes(const ir::Node* range);

  // Returns the node's value here; a vector if it varies over lanes.
  llvm::Value* Emit(const ir::Node* node);
  // Returns the value as a vector of `lanes`, if lanes > 1.
  llvm::Value* EmitWide(const ir::Node* node, int lanes);

  // `rows`: as many loads as there are lanes, each of them across memory in equal steps. If row i
  // is i elements after row 0, loads all of them along memory and transposes; Emit then returns the
  // transposed values. Otherwise does nothing.
  void EmitSquare(const std::vector<const ir::Node*>& rows);

  // Returns the address of the element at `index`, which must not vary over lanes.
  llvm::Value* Pointer(int buffer, const ir::Node* index) {
    return AddressOf(buffer, index, nullptr).scalar;
  }

  // Writes memory or a register slot.
  void EmitFetch(int buffer, const ir::Node* index);
  void EmitStore(int buffer, const ir::Node* index, const ir::Node* value, const ir::Node* valid,
                 bool streaming);

  // Stores a value that is already computed to memory, without lanes.
  void EmitStoreOf(int buffer, const ir::Node* index, llvm::Value* value);

  // A store that only copies 4, 8 or 16 bytes, all lanes at once. Where it is not `valid` (null:
  // always valid) it stores zeros; `from` may be read even then.
  struct CopyOfBytes {
    llvm::Value* to;
    llvm::Value* from;
    int64_t bytes;
    llvm::Value* valid;
  };
  std::optional<CopyOfBytes> FindCopy(int buffer, const ir::Node* index, const ir::Node* value);
  // Records that the buffer was written.
  void Touch(int buffer);

  // Register slots: [buffer][slot]; null: not set yet.
  using Slots = std::vector<std::vector<llvm::Value*>>;
  Slots& slots() { return slots_; }
  void SetSlot(int buffer, int64_t slot, llvm::Value* value);
  // The pointer must be available wherever the open scopes are.
  void SetBase(int buffer, llvm::Value* pointer) {
    bases_[buffer] = pointer;
    base_levels_[buffer] = level();
  }
  int64_t SlotOf(const ir::Node* index) const;

 private:
  struct Address {
    llvm::Value* scalar = nullptr;  // the element of lane 0
    int64_t stride = 0;             // in elements, from lane to lane
    llvm::Value* vector = nullptr;  // pointers of all lanes, if there is no such stride
    int lanes = 1;
    std::vector<int64_t> offsets;  // of the lanes from lane 0, if known
    bool irregular = false;        // the offsets are not multiples of a stride
    int64_t known_multiple = 1;    // lane 0's index is a multiple of it

    bool IsContiguous() const { return HasStride(1); }
    bool IsReversed() const { return HasStride(-1); }
    bool HasStride(int64_t of) const { return vector == nullptr && !irregular && stride == of; }
  };

  const Dependence& DependenceOf(const ir::Node* node);
  Dependence ComputeDependence(const ir::Node* node);
  int PlaceOf(const Dependence& dependence) const;
  llvm::Value* EmitAt(const ir::Node* node, int place);
  llvm::Value* EmitNode(const ir::Node* node);
  llvm::Value* EmitInteger(const ir::Node* node);
  llvm::Value* EmitReduce(const ir::Node* node);
  llvm::Value* EmitFused(const ir::Node* node);
  llvm::Value* EmitLoad(const ir::Node* node);
  llvm::Value* EmitScalarLoad(const ir::Node* node, const Address& from, llvm::Value* valid);
  void MarkInvariant(const ir::Node* node, llvm::LoadInst* load);
  llvm::Align ScalarAlign(ir::DType dtype, const Address& address) const;
  llvm::Align LoadAlign(ir::DType dtype, const Address& address) const;
  llvm::Value* EmitVectorLoad(const ir::Node* node, const Address& address, const ir::Node* valid);
  void EmitVectorStore(int buffer, const Address& address, llvm::Value* value,
                       const ir::Node* valid, bool streaming);
  void EmitScalarStore(int buffer, const Address& to, llvm::Value* value, llvm::Value* valid);
  void EmitSlotStore(int buffer, const ir::Node* index, const ir::Node* value,
                     const ir::Node* valid);
  bool SplitLanes(const kernel::Sum& sum, kernel::Sum* rest, Address* address);
  llvm::Value* LanePointers(llvm::Type* element, const Address& address);
  llvm::Value* EmitShuffledLoad(const ir::Node* node, const Address& address, llvm::Value* mask);
  Address AddressOf(int buffer, const ir::Node* index, const ir::Node* guard);
  llvm::Value* EmitSum(const kernel::Sum& sum, bool narrow, int* place);
  bool IsNarrow(const kernel::Sum& sum) const;
  llvm::Value* Integer(int64_t value, bool narrow);
  llvm::Value* Splat(llvm::Value* scalar, int lanes);
  bool IsFresh(const Scope::Known& known, const Dependence& dependence) const;
  llvm::Value* PointerAt(int buffer, llvm::Value* offset, int place);

  llvm::IRBuilder<>& builder_;
  const schedule::LoopProgram& program_;
  const bool narrow_;
  kernel::ExpressionFolder folder_;
  int lanes_ = 1;  // of the open vector loop or horizontal reduction
  const ir::Node* lane_range_ = nullptr;
  std::vector<Scope> scopes_;
  int64_t time_ = 0;                 // counts stores
  std::vector<int64_t> written_;     // by bit of Dependence::changing: the time of the last write
  std::vector<llvm::Value*> bases_;  // pointers of the buffers
  std::vector<int> base_levels_;     // the levels of their scopes
  Slots slots_;
  absl::flat_hash_map<const ir::Node*, int> range_levels_;
  absl::flat_hash_map<const ir::Node*, llvm::Value*> range_values_;
  absl::flat_hash_map<const ir::Node*, Dependence> dependences_;
};

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_LLVM_EXPRESSION_H_
