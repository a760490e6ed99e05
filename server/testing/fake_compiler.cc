#include "server/testing/fake_compiler.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"

namespace kiln::testing {
namespace {

int64_t BytesOf(ir::DType dtype, const ir::Shape& shape) {
  return ir::NumElements(shape) * ir::SizeOf(dtype);
}

absl::StatusOr<std::string> KernelFor(const ir::Node* node) {
  switch (node->op()) {
    case ir::Op::kInput:
      return "copy";
    case ir::Op::kAdd:
      return "add";
    case ir::Op::kNeg:
      return "fail";
    default:
      return absl::UnimplementedError(
          absl::StrCat("the fake compiler has no ", std::string(ir::Name(node->op()))));
  }
}

absl::StatusOr<compiler::KernelCall> Call(const ir::Node* node, int result,
                                          compiler::CompiledProgram* program,
                                          const drivers::Target& target,
                                          const compiler::Options& options) {
  auto code = KernelFor(node);
  if (!code.ok()) return code.status();
  compiler::CompiledKernel kernel;
  kernel.image.name = *code;
  kernel.image.code = *code;
  kernel.source = [code = *code] { return absl::StatusOr<std::string>(absl::StrCat("// ", code)); };
  kernel.digest = *code;
  kernel.ir = absl::StrCat(*code, "\n");
  if (options.tuned) kernel.setting = options.tuned(kernel.ir, target).value_or("");
  if (options.cache != nullptr) {
    kernel.from_cache = options.cache->Get(*code).has_value();
    if (!kernel.from_cache) options.cache->Put(*code, *code);
  }
  compiler::KernelCall call;
  call.kernel = static_cast<int>(program->kernels.size());
  program->kernels.push_back(kernel);
  std::vector<const ir::Node*> sources(node->operands().begin(), node->operands().end());
  if (sources.empty()) sources.push_back(node);
  for (const ir::Node* source : sources) {
    if (source->op() != ir::Op::kInput)
      return absl::UnimplementedError("the fake compiler takes inputs only");
    const int slot = static_cast<int>(source->attr<ir::InputAttr>().index);
    call.arguments.push_back({slot, 0, program->slots[slot].bytes});
  }
  call.arguments.push_back({result, 0, program->slots[result].bytes});
  return call;
}

bool Uses(const compiler::KernelCall& call, int slot) {
  return std::any_of(call.arguments.begin(), call.arguments.end(),
                     [slot](const compiler::Argument& argument) { return argument.slot == slot; });
}

// Kernels compute their results element by element, so an update is written in place if the last
// call that reads the input makes it.
void FindUpdatesInPlace(const graph::Graph& graph, compiler::CompiledProgram* program) {
  program->commit = static_cast<int>(program->calls.size());
  for (size_t i = 0; i < graph.updates.size(); ++i) {
    const size_t own = graph.outputs.size() + i;
    const int input = graph.updates[i].input;
    bool is_last = Uses(program->calls[own], input);
    for (size_t later = own + 1; later < program->calls.size(); ++later)
      is_last = is_last && !Uses(program->calls[later], input);
    if (!is_last) continue;
    program->updates_in_place.push_back(static_cast<int>(i));
    program->commit = std::min(program->commit, static_cast<int>(own));
  }
}

}  // namespace

absl::StatusOr<compiler::CompiledProgram> FakeCompile(const graph::Graph& graph,
                                                      const drivers::Target& target,
                                                      const compiler::Options& options) {
  using Kind = compiler::Slot::Kind;
  compiler::CompiledProgram program;
  std::vector<const ir::Node*> results = graph.outputs;
  int index = 0;
  for (const graph::Input& input : graph.inputs) {
    program.slots.push_back({Kind::kInput, index++, BytesOf(input.dtype, input.shape)});
  }
  index = 0;
  for (const ir::Node* output : graph.outputs) {
    program.slots.push_back({Kind::kOutput, index++, BytesOf(output->dtype(), output->shape())});
  }
  index = 0;
  for (const graph::Update& update : graph.updates) {
    program.slots.push_back({Kind::kUpdate, index++, program.slots[update.input].bytes});
    results.push_back(update.value);
  }
  for (size_t i = 0; i < results.size(); ++i) {
    auto call =
        Call(results[i], static_cast<int>(graph.inputs.size() + i), &program, target, options);
    if (!call.ok()) return call.status();
    program.calls.push_back(*call);
  }
  FindUpdatesInPlace(graph, &program);
  program.graph_text = graph::Print(graph);
  return program;
}

}  // namespace kiln::testing
