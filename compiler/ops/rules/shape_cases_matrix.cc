#include "compiler/ops/rules/shape_cases.h"

namespace kiln::ops {
namespace {

using ir::Shape;

void AddEinsums(std::vector<ShapeCase>& cases) {
  const auto equation = [](const char* text) {
    return Attributes{{"equation", std::string(text)}};
  };
  cases.insert(cases.end(),
               {{"einsum", {{2, 3}, {3, 4}}, equation("ij,jk->ik"), Shape{2, 4}},
                {"einsum", {{2, 3}, {3, 4}}, equation("ij, jk"), Shape{2, 4}},
                {"einsum", {{3, 3}}, equation("ii"), Shape{}},
                {"einsum", {{3, 2}}, equation("ba"), Shape{2, 3}},
                {"einsum", {{5, 2, 3}, {3, 4}}, equation("...ij,jk->...ik"), Shape{5, 2, 4}},
                {"einsum", {{6, 1, 2}, {5, 2}}, equation("...i,...i->...i"), Shape{6, 5, 2}},
                {"einsum", {{6, 1, 2}, {5, 2}}, equation("...i,...i"), Shape{6, 5}},
                {"einsum", {{1, 3}, {2, 3}}, equation("ij,ij->j"), Shape{3}},
                {"einsum", {{2, 3}, {4, 5}}, equation("ij,jk->ik"), kError},
                {"einsum", {{1, 3}}, equation("ii->i"), kError},
                {"einsum", {{2, 3}}, equation("ijk->i"), kError},
                {"einsum", {{2, 3}}, equation("ij->ik"), kError},
                {"einsum", {{2, 3}}, equation("ij->ii"), kError},
                {"einsum", {{2, 3}}, equation("ij,jk->i"), kError},
                {"einsum", {{2, 3}}, equation("i1->i"), kError},
                {"einsum", {{2, 3}}, equation("......->"), kError},
                {"einsum", {{2, 3}}, equation("i...ja"), kError}});
}

}  // namespace

void AddMatrices(std::vector<ShapeCase>& cases) {
  AddEinsums(cases);
  const Attributes q = {{"part", std::string("q")}};
  const Attributes r = {{"part", std::string("r")}};
  const Attributes complete = {{"part", std::string("q")}, {"complete", true}};
  cases.insert(cases.end(),
               {{"topk", {{2, 7}}, {{"k", I(3)}}, Shape{2, 3}},
                {"topk", {{2, 7}}, {{"k", I(2)}, {"axis", I(0)}}, Shape{2, 7}},
                {"topk", {{2, 7}}, {{"k", I(8)}}, kError},
                {"topk", {{2, 7}}, {{"k", I(-1)}}, kError},
                {"topk", {{}}, {{"k", I(0)}}, kError},
                {"diagonal", {{2, 3}}, {}, Shape{2}},
                {"diagonal", {{2, 3}}, {{"offset", I(2)}}, Shape{1}},
                {"diagonal", {{2, 3}}, {{"offset", I(-1)}}, Shape{1}},
                {"diagonal", {{2, 3}}, {{"offset", I(9)}}, Shape{0}},
                {"diagonal", {{2, 3}}, {{"offset", INT64_MIN}}, Shape{0}},
                {"diagonal", {{2, 3, 4}}, {{"axis1", I(-1)}, {"axis2", I(0)}}, Shape{3, 2}},
                {"diagonal", {{2, 3}}, {{"axis2", I(0)}}, kError},
                {"diagonal", {{2}}, {}, kError},
                {"diag_embed", {{2, 3}}, {}, Shape{2, 3, 3}},
                {"diag_embed", {{3}}, {{"offset", I(-2)}}, Shape{5, 5}},
                {"diag_embed", {{}}, {}, kError},
                {"diag_embed", {{3}}, {{"offset", INT64_MIN}}, kError},
                {"solve", {{3, 3}, {3, 2}}, {}, Shape{3, 2}},
                {"solve", {{4, 3, 3}, {3}}, {}, Shape{4, 3}},
                {"solve", {{4, 1, 3, 3}, {5, 3, 2}}, {}, Shape{4, 5, 3, 2}},
                {"solve", {{3, 2}, {3, 2}}, {}, kError},
                {"solve", {{3, 3}, {2, 3}}, {}, kError},
                {"solve", {{3, 3}, {}}, {}, kError},
                {"det", {{2, 3, 3}}, {}, Shape{2}},
                {"det", {{2, 3}}, {}, kError},
                {"det", {{3}}, {}, kError},
                {"qr", {{2, 5, 3}}, q, Shape{2, 5, 3}},
                {"qr", {{2, 5, 3}}, r, Shape{2, 3, 3}},
                {"qr", {{5, 3}}, complete, Shape{5, 5}},
                {"qr", {{3, 5}}, r, Shape{3, 5}},
                {"qr", {{5}}, q, kError},
                {"qr", {{5, 3}}, {{"part", std::string("l")}}, kError}});
}

}  // namespace kiln::ops
