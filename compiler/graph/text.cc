#include "compiler/graph/text.h"

#include <utility>

#include "absl/strings/str_join.h"
#include "compiler/graph/verify.h"
#include "compiler/ir/spec.h"
#include "compiler/ir/str_cat.h"
#include "compiler/ir/text.h"

namespace kiln::graph {
namespace {

absl::Status Invalid(std::string_view a, std::string_view b = "") {
  return absl::InvalidArgumentError(StrCat(a, b));
}

constexpr std::string_view kPrecision = "float32_matmul_precision";

// Reads a graph line by line.
class GraphParser {
 public:
  GraphParser() : parser_(*context_, ir::Level::kTensor) { graph_.context = context_; }

  absl::Status ParseLine(std::string_view line) {
    std::vector<std::string_view> words = ir::SplitWords(line);
    if (words[0] == kPrecision) return ParsePrecision(words);
    if (words[0] == "mesh") return ParseMesh(words);
    if (words[0] == "input") return ParseInput(words);
    if (words[0] == "output") return ParseOutput(words);
    if (words[0] == "update") return ParseUpdate(words);
    return parser_.ParseNode(line);
  }

  absl::StatusOr<Graph> Finish() {
    if (sharding_ != nullptr) graph_.sharding = std::move(sharding_);
    absl::Status status = Verify(graph_);
    // Verify returns INTERNAL, for graphs made by the compiler; here the text is wrong.
    if (!status.ok()) return absl::InvalidArgumentError(status.message());
    return std::move(graph_);
  }

 private:
  absl::Status ParsePrecision(const std::vector<std::string_view>& words) {
    const auto precision = words.size() == 2 ? ParseMatmulPrecision(words[1]) : std::nullopt;
    if (!precision) return Invalid(kPrecision, " is \"highest\" or \"high\"");
    graph_.float32_matmul_precision = *precision;
    return absl::OkStatus();
  }

  // The mesh is parsed before the inputs, whose specs name its axes.
  absl::Status ParseMesh(const std::vector<std::string_view>& words) {
    if (sharding_ != nullptr || !graph_.inputs.empty()) {
      return Invalid("a graph can have only one mesh, before its inputs");
    }
    sharding_ = std::make_shared<Sharding>();
    for (size_t i = 1; i < words.size(); ++i) {
      const size_t equals = std::min(words[i].find('='), words[i].size() - 1);
      absl::StatusOr<int64_t> size = ir::ParseInt(words[i].substr(equals + 1));
      if (!size.ok()) return size.status();
      sharding_->mesh.axes.push_back({std::string(words[i].substr(0, equals)), *size});
    }
    return CheckMesh(sharding_->mesh);
  }

  // "at 1": the device in a graph in stages. Either every input and output has one, or none has.
  absl::Status ParseStage(std::vector<std::string_view>& words, std::vector<int> Stages::*devices) {
    if (words.size() < 3 || words[words.size() - 2] != "at") return absl::OkStatus();
    const absl::StatusOr<int64_t> device = ir::ParseInt(words.back());
    if (!device.ok()) return device.status();
    if (sharding_ == nullptr || *device < 0 || *device >= kMeshDevicesMax) {
      return Invalid("expected a device of the mesh, such as 'at 1'");
    }
    if (!sharding_->stages) sharding_->stages.emplace();
    ((*sharding_->stages).*devices).push_back(static_cast<int>(*device));
    words.resize(words.size() - 2);
    return absl::OkStatus();
  }

  // The spec after the first `count` words of a line, if there is one.
  absl::StatusOr<Spec> ParseSpec(const std::vector<std::string_view>& words, size_t count,
                                 const ir::Shape& shape) {
    if (words.size() == count) return Spec(shape.size());
    constexpr std::string_view kSpec = "spec=[";
    if (sharding_ == nullptr) return Invalid("a spec needs a mesh");
    std::string_view text = words[count];
    if (words.size() != count + 1 || !text.starts_with(kSpec) || text.back() != ']') {
      return Invalid("expected a spec such as 'spec=[1,0,0]'");
    }
    text = text.substr(kSpec.size(), text.size() - kSpec.size() - 1);
    std::vector<int64_t> values;
    if (!text.empty()) {
      absl::StatusOr<std::vector<int64_t>> list = ir::ParseIntList(text);
      if (!list.ok()) return list.status();
      values = *std::move(list);
    }
    if (!ir::IsSpec(values, shape.size())) {
      return Invalid("a spec must have a count for each dimension and as many axes, each once");
    }
    return Decode(values, shape.size());
  }

  absl::Status ParseInput(std::vector<std::string_view> words) {
    absl::Status staged = ParseStage(words, &Stages::inputs);
    if (!staged.ok()) return staged;
    if (words.size() < 3) return Invalid("expected an input such as 'input 0 float32[2,3]'");
    absl::StatusOr<int64_t> index = ir::ParseInt(words[1]);
    if (!index.ok()) return index.status();
    if (*index != static_cast<int64_t>(graph_.inputs.size())) {
      return Invalid("inputs are numbered 0, 1, 2, …; expected ", StrCat(graph_.inputs.size()));
    }
    absl::StatusOr<ir::Type> type = ir::ParseType(words[2]);
    if (!type.ok()) return type.status();
    absl::StatusOr<Spec> spec = ParseSpec(words, 3, type->shape);
    if (!spec.ok()) return spec.status();
    if (sharding_ != nullptr) sharding_->inputs.push_back(*std::move(spec));
    graph_.inputs.push_back({type->dtype, std::move(type->shape)});
    return absl::OkStatus();
  }

  absl::Status ParseOutput(std::vector<std::string_view> words) {
    absl::Status staged = ParseStage(words, &Stages::outputs);
    if (!staged.ok()) return staged;
    if (words.size() < 2) return Invalid("expected an output such as 'output %3'");
    absl::StatusOr<const ir::Node*> node = parser_.Lookup(words[1]);
    if (!node.ok()) return node.status();
    absl::StatusOr<Spec> spec = ParseSpec(words, 2, (*node)->shape());
    if (!spec.ok()) return spec.status();
    if (sharding_ != nullptr) sharding_->outputs.push_back(*std::move(spec));
    graph_.outputs.push_back(*node);
    return absl::OkStatus();
  }

  absl::Status ParseUpdate(const std::vector<std::string_view>& words) {
    if (words.size() != 3) return Invalid("expected an update such as 'update 0 %3'");
    absl::StatusOr<int64_t> input = ir::ParseInt(words[1]);
    if (!input.ok()) return input.status();
    if (*input < 0 || *input >= static_cast<int64_t>(graph_.inputs.size())) {
      return Invalid("no such input is declared: ", words[1]);
    }
    absl::StatusOr<const ir::Node*> node = parser_.Lookup(words[2]);
    if (!node.ok()) return node.status();
    graph_.updates.push_back({static_cast<int>(*input), *node});
    return absl::OkStatus();
  }

  std::shared_ptr<ir::Context> context_ = std::make_shared<ir::Context>();
  std::shared_ptr<Sharding> sharding_;
  Graph graph_;
  ir::TextParser parser_;
};

}  // namespace

std::string_view Name(MatmulPrecision precision) {
  switch (precision) {
    case MatmulPrecision::kHighest:
      return "highest";
    case MatmulPrecision::kHigh:
      return "high";
  }
  return "";
}

std::optional<MatmulPrecision> ParseMatmulPrecision(std::string_view name) {
  for (const MatmulPrecision precision : {MatmulPrecision::kHighest, MatmulPrecision::kHigh}) {
    if (name == Name(precision)) return precision;
  }
  return std::nullopt;
}

namespace {

// The text after an input or output; empty if all devices hold all of it.
std::string SpecText(const Graph& graph, const std::vector<Spec> Sharding::*specs, size_t i) {
  if (graph.sharding == nullptr) return "";
  if (graph.sharding->stages) {
    const bool is_input = specs == &Sharding::inputs;
    const Stages& stages = *graph.sharding->stages;
    return StrCat(" at ", is_input ? stages.inputs[i] : stages.outputs[i]);
  }
  const Spec& spec = (*graph.sharding.*specs)[i];
  return IsWhole(spec) ? "" : StrCat(" spec=[", absl::StrJoin(Encode(spec), ","), "]");
}

}  // namespace

std::string Print(const Graph& graph) {
  ir::TextPrinter printer;
  if (graph.float32_matmul_precision != MatmulPrecision::kHighest) {
    printer.Line(StrCat(kPrecision, " ", Name(graph.float32_matmul_precision)));
  }
  if (graph.sharding != nullptr) {
    std::string mesh = "mesh";
    for (const Mesh::Axis& axis : graph.sharding->mesh.axes) {
      StrAppend(&mesh, " ", axis.name, "=", axis.size);
    }
    printer.Line(mesh);
  }
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const Input& input = graph.inputs[i];
    printer.Line(StrCat("input ", i, " ", ir::TypeText(input.dtype, input.shape),
                        SpecText(graph, &Sharding::inputs, i)));
  }
  // printer.Print writes the nodes that are not written yet. All nodes precede the results, so the
  // lines of the results are written last.
  std::vector<std::string> results;
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    results.push_back(
        StrCat("output ", printer.Print(graph.outputs[i]), SpecText(graph, &Sharding::outputs, i)));
  }
  for (const Update& update : graph.updates) {
    results.push_back(StrCat("update ", update.input, " ", printer.Print(update.value)));
  }
  for (const std::string& line : results) printer.Line(line);
  return printer.text();
}

absl::StatusOr<Graph> Parse(std::string_view text) {
  GraphParser parser;
  int number = 1;
  for (size_t begin = 0; begin < text.size(); ++number) {
    size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = ir::StripLine(text.substr(begin, end - begin));
    begin = end + 1;
    if (line.empty()) continue;
    absl::Status status = parser.ParseLine(line);
    if (!status.ok()) return ir::AtLine(number, status);
  }
  return parser.Finish();
}

}  // namespace kiln::graph
