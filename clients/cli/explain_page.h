// An explanation of a program as a page for a browser.
#ifndef KILN_CLIENTS_CLI_EXPLAIN_PAGE_H_
#define KILN_CLIENTS_CLI_EXPLAIN_PAGE_H_

#include <string>

#include "kiln/v1/program.pb.h"

namespace kiln::cli {

// Returns one page of HTML without scripts, which loads nothing else: kernels by their time, then
// everything that `kiln explain` prints, each part to be opened. All texts are escaped.
std::string ExplanationPage(const v1::ExplainProgramResponse& answer);

}  // namespace kiln::cli

#endif  // KILN_CLIENTS_CLI_EXPLAIN_PAGE_H_
