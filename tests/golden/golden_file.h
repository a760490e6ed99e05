// Compares texts with files of this folder. KILN_UPDATE_GOLDEN=1, or the test's --update, writes
// the files.
#ifndef KILN_TESTS_GOLDEN_GOLDEN_FILE_H_
#define KILN_TESTS_GOLDEN_GOLDEN_FILE_H_

#include <string>

namespace kiln::golden {

// Returns an empty text if the file `name`, a path within tests/golden, contains `text`; otherwise
// the first line that differs and what to do. Writes the file if files are to be updated.
std::string DifferenceFromFile(const std::string& name, const std::string& text);

// Returns the folder of the golden files.
std::string Folder();

}  // namespace kiln::golden

#endif  // KILN_TESTS_GOLDEN_GOLDEN_FILE_H_
