// Texts that are compared with files of this folder. KILN_UPDATE_GOLDEN=1, or the test's --update,
// writes the files.
#ifndef KILN_TESTS_GOLDEN_GOLDEN_FILE_H_
#define KILN_TESTS_GOLDEN_GOLDEN_FILE_H_

#include <string>

namespace kiln::golden {

// Empty if the file `name`, a path within tests/golden, holds `text`; otherwise the first line that
// differs and what to do. Writes the file when files are to be updated.
std::string DifferenceFromFile(const std::string& name, const std::string& text);

// The folder whose files are meant.
std::string Folder();

}  // namespace kiln::golden

#endif  // KILN_TESTS_GOLDEN_GOLDEN_FILE_H_
