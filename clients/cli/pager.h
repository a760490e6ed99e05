// Shows long output page by page.
#ifndef KILN_CLIENTS_CLI_PAGER_H_
#define KILN_CLIENTS_CLI_PAGER_H_

#include <string>

namespace kiln::cli {

// Shows the text by $PAGER, else by `less -FRX`, which ends at once if the text fits the terminal;
// returns when the user has left it. Returns false if nothing was shown: there is no such program,
// or $PAGER is "cat" or empty.
bool ShowInPager(const std::string& text);

}  // namespace kiln::cli

#endif  // KILN_CLIENTS_CLI_PAGER_H_
