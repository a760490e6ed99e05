#include "tests/numerics/compare.h"

#include <cmath>

#include "compiler/ir/str_cat.h"
#include "compiler/ops/infer.h"

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

std::string TypeOf(const HostTensor& tensor) {
  return StrCat(ir::Name(tensor.dtype), ops::ToString(tensor.shape));
}

}  // namespace

std::string Difference(const HostTensor& actual, const HostTensor& expected, double absolute,
                       double relative) {
  if (TypeOf(actual) != TypeOf(expected)) {
    return StrCat("is ", TypeOf(actual), ", expected ", TypeOf(expected));
  }
  int64_t different = 0;
  int64_t first = 0;
  for (int64_t i = expected.size() - 1; i >= 0; --i) {
    if (Agree(actual, expected, i, absolute, relative)) continue;
    ++different;
    first = i;
  }
  if (different == 0) return "";
  return StrCat(different, " of ", expected.size(), " elements of ", TypeOf(expected),
                " differ, first element ", first, ": ", actual.Number(first), ", expected ",
                expected.Number(first));
}

}  // namespace kiln::numerics
