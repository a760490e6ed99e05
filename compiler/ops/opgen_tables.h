// The table of ops as text for others.
#ifndef KILN_COMPILER_OPS_OPGEN_TABLES_H_
#define KILN_COMPILER_OPS_OPGEN_TABLES_H_

#include <string>

namespace kiln::ops {

// The module clients/python/kiln/_ops.py.
std::string PythonTable();

// The document clients/python/OPS.md.
std::string MarkdownTable();

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_OPGEN_TABLES_H_
