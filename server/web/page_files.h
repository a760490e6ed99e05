// The files of the web view's page, which the build embeds (embed.py).
#ifndef KILN_SERVER_WEB_PAGE_FILES_H_
#define KILN_SERVER_WEB_PAGE_FILES_H_

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace kiln::web {

struct PageFile {
  absl::string_view name;          // "index.html", "d3.min.js"
  absl::string_view content_type;  // "text/html; charset=utf-8"
  absl::string_view bytes;
};

// Empty if kilnd was built without the packages that the page needs.
absl::Span<const PageFile> PageFiles();
// Differs if any file differs; part of their addresses, so that browsers may keep them.
absl::string_view PageVersion();

}  // namespace kiln::web

#endif  // KILN_SERVER_WEB_PAGE_FILES_H_
