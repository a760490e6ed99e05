// Graphs: what a GraphBuilder builds and Client::Define gives to the daemon. The ops are in
// kiln/ops.h.
//
//   kiln::GraphBuilder builder;
//   kiln::Value x = builder.Input(kiln::DType::kFloat32, {2, 3});
//   builder.Output(kiln::ops::Mean(0.5 * x * x + 1));
//   absl::StatusOr<kiln::Graph> graph = builder.Build();
#ifndef KILN_CLIENTS_CPP_KILN_GRAPH_H_
#define KILN_CLIENTS_CPP_KILN_GRAPH_H_

#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kiln/dtype.h"
#include "kiln/mesh.h"

namespace kiln {

namespace v1 {
class Graph;
}

// Row-major, outermost first; empty is a scalar.
using Shape = std::vector<int64_t>;

// Where a node was built; messages show it as "train.cc:31". As std::source_location, which Clang
// has from version 16 on only.
class Location {
 public:
  // As a default argument: the caller's.
  static constexpr Location current(const char* file = __builtin_FILE(),
                                    int line = __builtin_LINE()) {
    return Location(file, line);
  }
  constexpr const char* file_name() const { return file_; }
  constexpr int line() const { return line_; }

 private:
  constexpr Location(const char* file, int line) : file_(file), line_(line) {}

  const char* file_;
  int line_;
};

// constant + the sum of factor * variable, of variables that GraphBuilder::Variable declared.
struct DimensionSum {
  int64_t constant = 0;
  std::vector<std::pair<std::string, int64_t>> terms;
};

// A size or another integer of a graph: a number, the name of a variable, or a sum of variables.
using Dimension = std::variant<int64_t, std::string, DimensionSum>;

// A list of them: {2, "length"}, or a Shape.
class Dimensions {
 public:
  Dimensions(std::initializer_list<Dimension> list) : list_(list) {}
  Dimensions(std::vector<Dimension> list) : list_(std::move(list)) {}
  Dimensions(const Shape& shape) : list_(shape.begin(), shape.end()) {}

  const std::vector<Dimension>& list() const { return list_; }

 private:
  std::vector<Dimension> list_;
};

// The value of a constant: a number, or as a Dimension has it.
using Number = std::variant<int64_t, double, bool, std::string, DimensionSum>;

class GraphBuilder;

// A node of the graph that a GraphBuilder builds; small, to be copied. Not to be used when the
// builder is gone.
class Value {
 public:
  // No node. Nothing can be computed from it.
  Value() = default;

  // What the daemon will find it to be; kUnspecified of a mistake.
  DType dtype() const { return dtype_; }
  // Null of a default-constructed value.
  GraphBuilder* builder() const { return builder_; }

 private:
  friend class GraphBuilder;
  Value(GraphBuilder* builder, int32_t node, DType dtype)
      : builder_(builder), node_(node), dtype_(dtype) {}

  GraphBuilder* builder_ = nullptr;
  int32_t node_ = -1;  // -1 with a builder: a mistake, which the builder has kept
  DType dtype_ = DType::kUnspecified;
};

// An operand of an op that broadcasts: a value, or a number. Numbers are weak: beside a tensor they
// take its dtype; only a number with a fraction's type beside integers is a float32, and an integer
// beside bools an int64.
class Operand {
 public:
  Operand(const Value& value, Location location = Location::current())
      : content_(value), location_(location) {}
  template <typename T>
  requires std::is_arithmetic_v<T> Operand(T number, Location location = Location::current())
      : content_(ToNumber(number)), location_(location) {}

  // Null of a number.
  const Value* value() const { return std::get_if<Value>(&content_); }
  // Of a number.
  const Number& number() const { return std::get<Number>(content_); }
  // Where a value or number became an operand.
  const Location& location() const { return location_; }

 private:
  template <typename T>
  static Number ToNumber(T number) {
    if constexpr (std::is_same_v<T, bool>) return number;
    if constexpr (std::is_floating_point_v<T>) return static_cast<double>(number);
    return static_cast<int64_t>(number);
  }

  std::variant<Value, Number> content_;
  Location location_;
};

// As ops::Add, Sub, Mul, Div and Neg.
Value operator+(const Operand& a, const Operand& b);
Value operator-(const Operand& a, const Operand& b);
Value operator*(const Operand& a, const Operand& b);
Value operator/(const Operand& a, const Operand& b);
Value operator-(const Operand& x);

using AttributeValue = std::variant<int64_t, double, bool, std::string, std::vector<int64_t>,
                                    std::vector<Dimension>, DimensionSum>;
using Attributes = std::map<std::string, AttributeValue>;

// An immutable graph, ready to be sent. Copies share it. Thread-safe.
class Graph {
 public:
  int num_inputs() const { return num_inputs_; }
  int num_outputs() const { return num_outputs_; }
  // Of its mesh; none if it runs on one device.
  const std::vector<std::string>& devices() const { return devices_; }
  const v1::Graph& proto() const { return *proto_; }

 private:
  friend class GraphBuilder;
  std::shared_ptr<const v1::Graph> proto_;
  std::vector<std::string> devices_;
  int num_inputs_ = 0;
  int num_outputs_ = 0;
};

// How precisely the float32 factors of matrix products and convolutions, gradients' included, are
// taken. They are multiplied and added up in float32 either way.
enum class MatmulPrecision {
  kHighest,  // as they are
  // Rounded to tf32, which has 10 bits behind the point instead of 23. NVIDIA's matrix units are
  // many times faster then; other devices round as well, so that results agree.
  kHigh,
};

// Builds a graph node by node. The daemon infers and checks shapes; the builder only sees to it
// that values are its own. The first mistake is kept and comes out of Build. Not thread-safe.
class GraphBuilder {
 public:
  GraphBuilder();
  ~GraphBuilder();
  // Values know where their builder is.
  GraphBuilder(const GraphBuilder&) = delete;
  GraphBuilder& operator=(const GraphBuilder&) = delete;

  // A variable for dimensions, 1 <= min <= max; each run binds it to a number.
  void Variable(std::string name, int64_t min, int64_t max);
  // Inputs are numbered in the order of these calls; Client::Run takes its tensors in that order.
  Value Input(DType dtype, const Dimensions& shape, Location location = Location::current());

  // Any op of the daemon's table, by name; the functions of kiln/ops.h call it. `dtype` is needed
  // for sources, cast and bitcast alone.
  Value AddNode(std::string_view op, absl::Span<const Value> operands,
                const Attributes& attributes = {}, DType dtype = DType::kUnspecified,
                Location location = Location::current());

  // Of the whole graph, whenever it is called; without a call it is kHighest.
  void SetFloat32MatmulPrecision(MatmulPrecision precision);

  // The graph runs on all devices of a mesh. Before Lay, Shard and outputs with a spec.
  void SetMesh(Mesh mesh);
  // How the tensors lie that are passed for an input; without a call each device has all of them.
  // What Update puts in its place lies as it does.
  void Lay(Value input, const Spec& spec);
  // `x`, which lies as `spec` says; it has an entry for each dimension. Results do not depend on
  // it, only who computes what.
  Value Shard(Value x, const Spec& spec, Location location = Location::current());

  // Instead of a mesh: layers on one device and the next ones on another, in one program. What is
  // made of a value is computed where it lies; gradients of what was sent are sent back. `devices`:
  // up to 64, each once. Before PutOn and Send.
  void SetStages(std::vector<std::string> devices);
  // Where the tensors lie that are passed for an input; without a call on the first device. Before
  // anything is made of it.
  void PutOn(Value input, std::string_view device);
  // `x` on another device.
  Value Send(Value x, std::string_view device, Location location = Location::current());

  // Outputs are numbered in the order of these calls. On a mesh they lie as `spec` says.
  void Output(Value value, const Spec& spec = {});
  // After a run, the tensor bound to `input` holds `value` instead. All reads of the run see the
  // old value.
  void Update(Value input, Value value);

  // Keeps `mistake`, unless there is one already, and gives a value from which nothing more is
  // built. For functions that build graphs and find something wrong.
  Value Fail(const absl::Status& mistake);

  // The graph so far, or the first mistake.
  absl::StatusOr<Graph> Build() const;

 private:
  // Whether it is a node of this graph. If not, that is a mistake of `where`.
  bool Check(const Value& value, std::string_view where, std::string_view what);

  std::unique_ptr<v1::Graph> proto_;
  // Of a node of these operands: its device's number in stages; -1: made of no input.
  int DeviceOf(std::string_view op, absl::Span<const Value> operands,
               const Attributes& attributes) const;
  // The number of a device of the stages. Else that is a mistake of `where`, and -1.
  int FindDevice(std::string_view device, std::string_view where);

  Mesh mesh_;
  std::vector<int> devices_;  // by node, in stages
  bool in_stages_ = false;
  absl::Status status_;
  int num_inputs_ = 0;
};

}  // namespace kiln

#endif  // KILN_CLIENTS_CPP_KILN_GRAPH_H_
