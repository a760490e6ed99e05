// Which build of kilnd this is.
#ifndef KILN_SERVER_VERSION_TEXT_H_
#define KILN_SERVER_VERSION_TEXT_H_

#include <string>

namespace kiln {

// Returns what `kilnd --version` prints: three lines, with the version, the commit, and how it was
// compiled.
std::string VersionText();

}  // namespace kiln

#endif  // KILN_SERVER_VERSION_TEXT_H_
