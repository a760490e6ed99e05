// The documents that are made from the table of configuration keys.
#ifndef KILN_SERVER_CONFIG_DOCUMENTS_H_
#define KILN_SERVER_CONFIG_DOCUMENTS_H_

#include <string>

#include "server/config/config.h"

namespace kiln::config {

// The text that `kilnd --help` prints.
std::string HelpText();
// docs/configuration.md: all keys.
std::string ReferencePage();
// All values with their origins, as a file that gives the same configuration.
std::string ConfigText(const Config& config, const Origins& origins);
// deploy/kilnd.toml: all keys of the file with their defaults, commented out.
std::string ExampleFile();

}  // namespace kiln::config

#endif  // KILN_SERVER_CONFIG_DOCUMENTS_H_
