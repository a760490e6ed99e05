// Damages bytes and lines of text.
#ifndef KILN_TESTS_FUZZ_MUTATE_H_
#define KILN_TESTS_FUZZ_MUTATE_H_

#include <string>

#include "tests/fuzz/run.h"

namespace kiln::fuzz {

// Makes one to eight changes: flips a bit, sets a byte, removes, repeats or inserts bytes, inserts
// a piece of `other`, cuts the end.
std::string MutateBytes(Random& random, std::string bytes, const std::string& other);

// Makes one to four changes: replaces a word by another word of the text, by a piece of `other` or
// by a critical number; removes, repeats or moves a line; or MutateBytes.
std::string MutateText(Random& random, std::string text, const std::string& other);

}  // namespace kiln::fuzz

#endif  // KILN_TESTS_FUZZ_MUTATE_H_
