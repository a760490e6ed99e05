#include "tests/numerics/compare.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "compiler/ir/str_cat.h"
#include "compiler/ops/rules/infer.h"

namespace kiln::numerics {
namespace {

using ops::HostTensor;

bool Agree(const HostTensor& actual, const HostTensor& expected, int64_t i, double absolute,
           double relative) {
  if (!ir::IsFloat(expected.dtype)) return actual.Int(i) == expected.Int(i);
  const double a = actual.Float(i);
  const double e = expected.Float(i);
  if (std::isnan(e) || std::isnan(a)) return std::isnan(e) && std::isnan(a);
  if (std::isinf(e) || std::isinf(a)) return a == e;
  return std::abs(a - e) <= absolute + relative * std::abs(e);
}

// Returns the element's index among all values of its float dtype; 0 for both zeros.
int64_t PlaceOf(const HostTensor& tensor, int64_t i) {
  const int size = ir::SizeOf(tensor.dtype);
  int64_t bits = 0;
  std::memcpy(&bits, tensor.bytes.data() + size * i, size);
  const uint64_t sign = uint64_t{1} << (8 * size - 1);
  const auto magnitude = static_cast<int64_t>(static_cast<uint64_t>(bits) & (sign - 1));
  return static_cast<uint64_t>(bits) & sign ? -magnitude : magnitude;
}

bool IsClose(const HostTensor& actual, const HostTensor& expected, int64_t i, Closeness closeness) {
  if (!ir::IsFloat(expected.dtype)) return actual.Int(i) == expected.Int(i);
  const double a = actual.Float(i);
  const double e = expected.Float(i);
  if (std::isnan(e) || std::isnan(a)) return std::isnan(e) && std::isnan(a);
  if (closeness.signed_zeros && a == 0 && e == 0) return std::signbit(a) == std::signbit(e);
  return std::abs(PlaceOf(actual, i) - PlaceOf(expected, i)) <= closeness.ulps;
}

std::string TypeOf(const HostTensor& tensor) {
  return StrCat(ir::Name(tensor.dtype), ops::ToString(tensor.shape));
}

std::string DifferenceWhere(const HostTensor& actual, const HostTensor& expected,
                            const std::function<bool(int64_t)>& agree) {
  if (TypeOf(actual) != TypeOf(expected)) {
    return StrCat("is ", TypeOf(actual), ", expected ", TypeOf(expected));
  }
  int64_t different = 0;
  int64_t first = 0;
  for (int64_t i = expected.size() - 1; i >= 0; --i) {
    if (agree(i)) continue;
    ++different;
    first = i;
  }
  if (different == 0) return "";
  return StrCat(different, " of ", expected.size(), " elements of ", TypeOf(expected),
                " differ, first element ", first, ": ", actual.Number(first), ", expected ",
                expected.Number(first));
}

}  // namespace

std::string Difference(const HostTensor& actual, const HostTensor& expected, double absolute,
                       double relative) {
  return DifferenceWhere(actual, expected,
                         [&](int64_t i) { return Agree(actual, expected, i, absolute, relative); });
}

std::string Difference(const HostTensor& actual, const HostTensor& expected, Closeness closeness) {
  return DifferenceWhere(actual, expected,
                         [&](int64_t i) { return IsClose(actual, expected, i, closeness); });
}

}  // namespace kiln::numerics
