// Implements ParseKernel of kernel.h.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler/kernel/bounds.h"
#include "compiler/kernel/kernel.h"
#include "compiler/kernel/text_parser.h"

namespace kiln::kernel {

using ir::Node;

namespace {

class KernelParser {
 public:
  explicit KernelParser(ir::Context& context)
      : context_(context), expressions_(context, kernel_.buffers) {}

  absl::StatusOr<Kernel> Run(std::string_view text) {
    int number = 0;
    const std::vector<std::string> lines = absl::StrSplit(std::string(text), '\n');
    for (const std::string& raw : lines) {
      ++number;
      const std::string line = raw.substr(0, raw.find('#'));
      LineReader reader(line);
      if (reader.AtEnd()) continue;
      absl::Status status = ParseLine(reader);
      if (status.ok() && !reader.AtEnd()) status = reader.Error("unexpected text at the end");
      if (!status.ok()) {
        return absl::InvalidArgumentError(absl::StrCat("line ", number, ": ", status.message()));
      }
    }
    // Verify returns INTERNAL, for kernels made by the compiler; here the text is wrong.
    if (absl::Status form = Verify(kernel_); !form.ok()) {
      return absl::InvalidArgumentError(form.message());
    }
    return kernel_;
  }

 private:
  absl::Status ParseLine(LineReader& line) {
    if (line.Take("buffer")) return ParseBuffer(line);
    if (line.Take("grid")) return ParseRanges(line, &kernel_.grid);
    if (line.Take("stage")) return ParseStage(line);
    return ParseStatement(line);
  }

  absl::Status ParseBuffer(LineReader& line) {
    if (absl::Status s = line.Expect(absl::StrCat("b", kernel_.buffers.size())); !s.ok()) return s;
    absl::StatusOr<std::string> dtype = line.TakeName();
    if (!dtype.ok()) return dtype.status();
    const std::optional<ir::DType> named = ir::ParseDType(*dtype);
    if (!named.has_value()) return line.Error(absl::StrCat("no dtype \"", *dtype, "\""));
    if (absl::Status s = line.Expect("["); !s.ok()) return s;
    absl::StatusOr<int64_t> elements = line.TakeInt();
    if (!elements.ok()) return elements.status();
    if (absl::Status s = line.Expect("]"); !s.ok()) return s;
    Buffer buffer{*named, *elements, Memory::kGlobal, Access::kWrite};
    if (line.Take("read")) {
      buffer.access = Access::kRead;
    } else if (line.Take("local")) {
      buffer.memory = Memory::kLocal;
    } else if (line.Take("update")) {
      buffer.access = Access::kUpdate;
    } else if (absl::Status s = line.Expect("write"); !s.ok()) {
      return s;
    }
    kernel_.buffers.push_back(buffer);
    return absl::OkStatus();
  }

  absl::Status ParseRanges(LineReader& line, std::vector<const Node*>* ranges) {
    while (line.Take("r" + std::to_string(next_range_))) {
      if (absl::Status s = line.Expect(":"); !s.ok()) return s;
      absl::StatusOr<int64_t> extent = line.TakeInt();
      if (!extent.ok()) return extent.status();
      if (*extent < 1) return line.Error("a range must have at least one step");
      const Node* range = context_.Get(ir::Op::kRange, ir::DType::kInt64, {}, {},
                                       ir::RangeAttr{next_range_, *extent});
      expressions_.Define(absl::StrCat("r", next_range_++), range);
      ranges->push_back(range);
    }
    return absl::OkStatus();
  }

  absl::Status ParseStage(LineReader& line) {
    Stage stage;
    if (absl::Status s = ParseRanges(line, &stage.ranges); !s.ok()) return s;
    if (line.Take("reduce")) {
      if (absl::Status s = ParseRanges(line, &stage.reduce_ranges); !s.ok()) return s;
    }
    if (line.Take("order")) {
      if (absl::Status s = ParseRanges(line, &stage.ordered_ranges); !s.ok()) return s;
    }
    expressions_.SetReduceRanges(stage.reduce_ranges);
    kernel_.stages.push_back(std::move(stage));
    return absl::OkStatus();
  }

  absl::Status ParseStatement(LineReader& line) {
    if (kernel_.stages.empty()) return line.Error("a statement outside of a stage");
    absl::StatusOr<std::string> name = line.TakeName();
    if (!name.ok()) return name.status();
    // Names of values begin with v, names of buffers with b.
    const bool defines = name->front() == 'v';
    ExpressionParser::Place place;
    if (!defines) {
      absl::StatusOr<ExpressionParser::Place> parsed = expressions_.ParsePlace(line, *name);
      if (!parsed.ok()) return parsed.status();
      place = *parsed;
    }
    if (absl::Status s = line.Expect("="); !s.ok()) return s;
    absl::StatusOr<const Node*> value = expressions_.Parse(line);
    if (!value.ok()) return value.status();
    if (defines) {
      if (expressions_.IsDefined(*name))
        return line.Error(absl::StrCat(*name, " is defined twice"));
      expressions_.Define(*name, *value);
    } else {
      kernel_.stages.back().stores.push_back({place.buffer, place.index, *value, place.valid});
    }
    return absl::OkStatus();
  }

  ir::Context& context_;
  // Declared before `expressions_`, which refers to its buffers.
  Kernel kernel_;
  ExpressionParser expressions_;
  int64_t next_range_ = 0;
};

}  // namespace

absl::StatusOr<Kernel> ParseKernel(std::string_view text, ir::Context& context) {
  return KernelParser(context).Run(text);
}

}  // namespace kiln::kernel
