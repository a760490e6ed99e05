// The documents that are made from the table of configuration keys.
#ifndef KILN_SERVER_CONFIG_DOCUMENTS_H_
#define KILN_SERVER_CONFIG_DOCUMENTS_H_

#include <string>

namespace kiln::config {

// The text that `kilnd --help` prints.
std::string HelpText();
// docs/configuration.md: all keys.
std::string ReferencePage();
// deploy/kilnd.toml: all keys of the file with their defaults, commented out.
std::string ExampleFile();

}  // namespace kiln::config

#endif  // KILN_SERVER_CONFIG_DOCUMENTS_H_
