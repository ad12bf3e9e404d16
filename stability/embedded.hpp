#pragma once
// Files that are part of the program, by the name they have in stability/CMakeLists.txt. Throws std::logic_error for
// a name that is not there.

#include <string_view>

namespace rowtune::stability {
std::string_view embedded(std::string_view name);
}
