// Random legal settings of a kernel.
#ifndef KILN_COMPILER_SEARCH_TESTING_RANDOM_SETTING_H_
#define KILN_COMPILER_SEARCH_TESTING_RANDOM_SETTING_H_

#include <random>

#include "compiler/search/space.h"

namespace kiln::search {

// Returns a setting with the same forms in which about a third of the other knobs has any of its
// values. It need not be legal.
Setting Scattered(const Space& space, Setting setting, std::mt19937_64& random);

// Returns a legal setting: some legal steps from the heuristic's, through any forms, and then as
// Scattered, if one of a few attempts at that is legal.
Setting RandomSetting(const Space& space, std::mt19937_64& random);

}  // namespace kiln::search

#endif  // KILN_COMPILER_SEARCH_TESTING_RANDOM_SETTING_H_
