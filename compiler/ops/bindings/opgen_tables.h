// The tables of ops and dtypes in other languages and formats.
#ifndef KILN_COMPILER_OPS_BINDINGS_OPGEN_TABLES_H_
#define KILN_COMPILER_OPS_BINDINGS_OPGEN_TABLES_H_

#include <string>
#include <string_view>

namespace kiln::ops {

// Returns a string literal for Python and JSON. The table's texts have no control characters, so
// only quotes and backslashes are escaped.
std::string Quoted(std::string_view text);

// The dtypes: the module clients/python/kiln/_basics/dtype_table.py, clients/cpp/kiln/dtype.h and
// clients/cpp/dtype.cc.
std::string PythonDTypes();
std::string CppDTypesHeader();
std::string CppDTypesSource();

// The module clients/python/kiln/_ops/table.py.
std::string PythonTable();

// The module clients/python/kiln/_rules/generated.py.
std::string PythonRules();

// The document clients/python/OPS.md.
std::string MarkdownTable();

// The C++ client's bindings: clients/cpp/kiln/ops.h, and clients/cpp/ops.cc, which defines them and
// holds the client's dtype rules.
std::string CppHeader();
std::string CppSource();

// tests/golden/shape_cases.json: {"shapes": […], "dtypes": […]}, one case per line. A case has
// "op", "operands" (shapes, or names of dtypes), "attributes" or "declared" (null if absent), and
// "result", which is null for an error.
std::string CasesJson();

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_BINDINGS_OPGEN_TABLES_H_
