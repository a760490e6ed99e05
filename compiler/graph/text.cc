#include "compiler/graph/text.h"

#include <utility>

#include "compiler/graph/verify.h"
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
    if (words[0] == "input") return ParseInput(words);
    if (words[0] == "output") return ParseOutput(words);
    if (words[0] == "update") return ParseUpdate(words);
    return parser_.ParseNode(line);
  }

  absl::StatusOr<Graph> Finish() {
    absl::Status status = Verify(graph_);
    // Verify blames the compiler with INTERNAL, but this graph is the text's.
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

  absl::Status ParseInput(const std::vector<std::string_view>& words) {
    if (words.size() != 3) return Invalid("expected an input such as 'input 0 float32[2,3]'");
    absl::StatusOr<int64_t> index = ir::ParseInt(words[1]);
    if (!index.ok()) return index.status();
    if (*index != static_cast<int64_t>(graph_.inputs.size())) {
      return Invalid("inputs are numbered 0, 1, 2, …; expected ", StrCat(graph_.inputs.size()));
    }
    absl::StatusOr<ir::Type> type = ir::ParseType(words[2]);
    if (!type.ok()) return type.status();
    graph_.inputs.push_back({type->dtype, std::move(type->shape)});
    return absl::OkStatus();
  }

  absl::Status ParseOutput(const std::vector<std::string_view>& words) {
    if (words.size() != 2) return Invalid("expected an output such as 'output %3'");
    absl::StatusOr<const ir::Node*> node = parser_.Lookup(words[1]);
    if (!node.ok()) return node.status();
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

std::string Print(const Graph& graph) {
  ir::TextPrinter printer;
  if (graph.float32_matmul_precision != MatmulPrecision::kHighest) {
    printer.Line(StrCat(kPrecision, " ", Name(graph.float32_matmul_precision)));
  }
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const Input& input = graph.inputs[i];
    printer.Line(StrCat("input ", i, " ", ir::TypeText(input.dtype, input.shape)));
  }
  // printer.Print writes the nodes that are not written yet. They stand before all results, so
  // those lines wait.
  std::vector<std::string> results;
  for (const ir::Node* output : graph.outputs) {
    results.push_back(StrCat("output ", printer.Print(output)));
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
