// Used instead of the embedded files if the build does not find the packages that they need.
#include "server/web/page_files.h"

namespace kiln::web {

absl::Span<const PageFile> PageFiles() { return {}; }
absl::string_view PageVersion() { return ""; }

}  // namespace kiln::web
