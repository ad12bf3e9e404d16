#pragma once
// stability.csv: one line a measured method.

#include <string>
#include <string_view>
#include <vector>

#include "stability/study.hpp"

namespace rowtune::stability {

/// Shortest decimal that reads back as the same double; `nan`, `inf`, `-inf`; empty when absent.
std::string csv_number(const std::optional<double>& value);
/// Quoted where the text needs it.
std::string csv_field(std::string_view text);

std::string csv_header();
std::string csv_line(const Result& result);
std::string csv_of(const std::vector<Result>& results);

}  // namespace rowtune::stability
