// Scalar kernel expressions, flattened once and evaluated at many points. Derived classes define
// the results of loads and the points of reductions.
#ifndef KILN_COMPILER_PROOF_EVALUATOR_H_
#define KILN_COMPILER_PROOF_EVALUATOR_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "compiler/ir/node.h"
#include "compiler/proof/value.h"

namespace kiln::proof {

class Evaluator {
 public:
  virtual ~Evaluator() = default;

  // The values of all open ranges, by slot.
  using Environment = std::vector<int64_t>;

 protected:
  Environment& environment() { return environment_; }
  int64_t ValueOf(const ir::Node* range) { return environment_[SlotOf(range)]; }
  void SetRange(const ir::Node* range, int64_t value) { environment_[SlotOf(range)] = value; }

  Value Evaluate(const ir::Node* root);

  virtual Value Load(int buffer, ir::DType dtype, int64_t index) = 0;
  // Calls `visit` at each point of a reduction's ranges, after setting their values.
  virtual void ForEachPoint(absl::Span<const ir::Node* const> ranges,
                            absl::FunctionRef<void()> visit) = 0;

  // Keeps the first fault. Later ones are often its consequences.
  void Fail(std::string why);
  bool failed() const { return !failure_.empty(); }
  const std::string& failure() const { return failure_; }
  void ClearFailure() { failure_.clear(); }

 private:
  struct Step {
    ir::Op op = ir::Op::kConst;
    ir::DType dtype = ir::DType::kInvalid;
    ir::DType operand_dtype = ir::DType::kInvalid;  // of the first operand
    bool is_index = false;                          // int64 with two operands
    int result = 0;                                 // index of its value
    int operands[3] = {0, 0, 0};                    // indices of their values
    int count = 0;
    int number = 0;                  // a range's slot, a load's buffer
    const ir::Node* node = nullptr;  // a reduction
  };
  // Steps with operands before users; constants have their values and no step. The nodes below a
  // reduction are on a separate tape, of its operand.
  struct Tape {
    std::vector<Step> steps;
    std::vector<Value> values;
  };
  int SlotOf(const ir::Node* range);
  Tape& TapeOf(const ir::Node* root);
  Step MakeStep(const ir::Node* node, int result,
                const absl::flat_hash_map<const ir::Node*, int>& numbers);
  Value Run(const Step& step, const Tape& tape);
  Value Reduce(const ir::Node* reduce);

  absl::flat_hash_map<const ir::Node*, int> slots_;
  absl::flat_hash_map<const ir::Node*, std::unique_ptr<Tape>> tapes_;
  Environment environment_;
  std::string failure_;
};

}  // namespace kiln::proof

#endif  // KILN_COMPILER_PROOF_EVALUATOR_H_
