#include "server/tuner/program_difference.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/kernel/sample_inputs.h"
#include "server/tuner/compare_results.h"

namespace kiln::tuner {
namespace {

using compiler::CompiledProgram;
using compiler::KernelCall;

std::string IdentityOf(const CompiledProgram& program, const KernelCall& call) {
  return absl::StrCat(absl::StrJoin(call.values, ","), "\n", program.kernels[call.kernel].ir);
}

// Returns the calls of `program` that `other` has not.
std::vector<const KernelCall*> CallsWithout(const CompiledProgram& program,
                                            const CompiledProgram& other) {
  std::map<std::string, int> known;
  for (const KernelCall& call : other.calls) ++known[IdentityOf(other, call)];
  std::vector<const KernelCall*> calls;
  for (const KernelCall& call : program.calls) {
    const auto found = known.find(IdentityOf(program, call));
    if (found != known.end() && found->second > 0) {
      --found->second;
    } else {
      calls.push_back(&call);
    }
  }
  return calls;
}

// A value that the kernels read or write.
struct ValueUse {
  int buffer = 0;
  bool is_input = false;
  bool written[2] = {false, false};  // by way
};

class DifferenceBuilder {
 public:
  explicit DifferenceBuilder(ir::Context& context) : context_(context) {}

  absl::StatusOr<ProgramDifference> Build(const CompiledProgram& before,
                                          const CompiledProgram& after) {
    const CompiledProgram* const programs[] = {&before, &after};
    const std::vector<const KernelCall*> calls[] = {CallsWithout(before, after),
                                                    CallsWithout(after, before)};
    for (const int way : {0, 1}) {
      for (const KernelCall* call : calls[way]) {
        absl::Status added = Add(way, *programs[way], *call);
        if (!added.ok()) return added;
      }
    }
    for (const auto& [number, value] : values_) {
      kernel::Buffer& buffer = result_.kernel.buffers[value.buffer];
      const bool is_written = value.written[0] || value.written[1];
      // Nothing could say which of its elements the kernels read before they write them.
      if (is_written && value.is_input)
        return absl::UnimplementedError("a value is read, and then changed");
      buffer.access = is_written ? kernel::Access::kWrite : kernel::Access::kRead;
    }
    AddLoops();
    result_.compared = result_.kernel;
    for (const auto& [number, value] : values_) {
      if (!value.written[0] || !value.written[1])
        result_.compared.buffers[value.buffer].access = kernel::Access::kRead;
    }
    return std::move(result_);
  }

 private:
  absl::Status Add(int way, const CompiledProgram& program, const KernelCall& call) {
    const compiler::CompiledKernel& compiled = program.kernels[call.kernel];
    auto kernel = kernel::ParseKernel(compiled.ir, context_);
    if (!kernel.ok()) return kernel.status();
    TrialStep step{.image = compiled.image, .arguments = {}};
    bool reads_integers = false;
    for (size_t i = 0; i < call.arguments.size(); ++i) {
      const kernel::Buffer& buffer = kernel->buffers[i];
      if (i >= call.values.size() || call.values[i] < 0)
        return absl::UnimplementedError("an argument of a kernel is no value");
      ValueUse& value = UseOf(call.values[i], buffer);
      const bool reads = buffer.access != kernel::Access::kWrite;
      if (reads && !value.written[way]) value.is_input = true;
      if (buffer.access != kernel::Access::kRead) value.written[way] = true;
      reads_integers = reads_integers || (reads && ir::IsInteger(buffer.dtype));
      step.arguments.push_back(value.buffer);
    }
    if (way == 0) result_.tolerance += ToleranceOf(*kernel);
    if (reads_integers) {
      const int64_t bound = kernel::IntegerBound(*kernel);
      integer_bound_ = std::min(bound, integer_bound_.value_or(bound));
    }
    (way == 0 ? result_.before : result_.after).push_back(std::move(step));
    return absl::OkStatus();
  }

  ValueUse& UseOf(int number, const kernel::Buffer& buffer) {
    const auto [found, is_new] = values_.try_emplace(number);
    if (is_new) {
      found->second.buffer = static_cast<int>(result_.kernel.buffers.size());
      result_.kernel.buffers.push_back(
          {buffer.dtype, buffer.elements, kernel::Memory::kGlobal, kernel::Access::kRead});
    }
    return found->second;
  }

  // Inputs are made as a kernel's loops say: integers below their bound, and floats that are not
  // whole, since sums are of values that were rounded before. So there are loops that say that.
  void AddLoops() {
    const std::vector<kernel::Buffer>& buffers = result_.kernel.buffers;
    for (size_t out = 0; out < buffers.size(); ++out) {
      if (buffers[out].access != kernel::Access::kWrite || !ir::IsFloat(buffers[out].dtype))
        continue;
      for (size_t in = 0; in < buffers.size(); ++in) {
        if (buffers[in].access != kernel::Access::kRead || buffers[in].dtype != buffers[out].dtype)
          continue;
        const std::string text =
            absl::StrCat(kernel::Print(result_.kernel), "stage r0:", integer_bound_.value_or(2),
                         " reduce r1:2\n  b", out, "[r0] = sum(exp2(b", in, "[r1]))\n");
        if (auto parsed = kernel::ParseKernel(text, context_); parsed.ok()) {
          result_.kernel.stages = std::move(parsed->stages);
          return;
        }
      }
    }
  }

  ir::Context& context_;
  ProgramDifference result_;
  std::map<int, ValueUse> values_;
  std::optional<int64_t> integer_bound_;
};

}  // namespace

absl::StatusOr<ProgramDifference> DifferenceOf(const CompiledProgram& before,
                                               const CompiledProgram& after, ir::Context& context) {
  return DifferenceBuilder(context).Build(before, after);
}

}  // namespace kiln::tuner
