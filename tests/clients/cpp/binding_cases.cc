#include "tests/clients/cpp/binding_cases.h"

#include "tests/numerics/cases/builders.h"

namespace kiln::bindings {
namespace {

using numerics::Case;
using numerics::Make;
using numerics::Named;

Case Declared(Case test_case, ir::DType dtype) {
  test_case.declared = dtype;
  return test_case;
}

}  // namespace

std::vector<Case> Cases() {
  const ops::AttributeValue shape = std::vector<int64_t>{2, 3};
  std::vector<Case> cases = numerics::Cases();
  cases.insert(
      cases.end(),
      {Declared(Make("const", {}, {{"value", 1.5}}), ir::DType::kFloat32),
       Named("const_int", Declared(Make("const", {}, {{"value", int64_t{7}}, {"shape", shape}}),
                                   ir::DType::kInt16)),
       Named("const_bool", Declared(Make("const", {}, {{"value", true}}), ir::DType::kBool)),
       Declared(Make("iota", {}, {{"shape", shape}, {"axis", int64_t{1}}}), ir::DType::kInt64),
       Named("conv3d_bias", Make("conv3d", {{{1, 2, 3, 3, 3}}, {{2, 2, 2, 2, 2}}, {{2}}})),
       Named("conv_transpose3d_bias",
             Make("conv_transpose3d", {{{1, 2, 3, 3, 3}}, {{2, 2, 2, 2, 2}}, {{2}}})),
       Make("detach", {{{2, 3}}}), Make("gradient", {{{}}, {{2, 3}}}),
       Named("gradient_upstream", Make("gradient", {{{2}}, {{3}}, {{2}}}))});
  return cases;
}

}  // namespace kiln::bindings
