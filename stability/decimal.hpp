#pragma once
// Decimal strings as numbers, rounded once and correctly whatever their length or size: a parser for double in between
// would round twice, or refuse 1e400.

#include <string>
#include <string_view>

#include "kernels/words.hpp"

namespace rowtune::stability {

/// `-1.5e-3`, `17`, `.5`, `inf`, `-inf`, `nan` (any case, `infinity` too). Throws UsageError naming the text.
double decimal_to(Dtype dtype, std::string_view text);
/// Nearest long double; for expected values and eps.
long double decimal_to_long_double(std::string_view text);

/// How far the number behind a rounded decimal may lie from it: half a unit in its last place if it has at least 12
/// significant digits (people write results of computations so), else 0: a short decimal means what it says.
long double rounding_of_decimal(std::string_view text);

/// Whether the whole text is a number that decimal_to takes.
bool is_decimal(std::string_view text);

}  // namespace rowtune::stability
