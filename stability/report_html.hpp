#pragma once
// stability.html: the findings, the figures and the tables as one page that loads nothing from anywhere.

#include <string>
#include <vector>

#include "stability/findings.hpp"

namespace rowtune::stability {

std::string html_report(const std::vector<Result>& results, const StudyFacts& facts);

}  // namespace rowtune::stability
