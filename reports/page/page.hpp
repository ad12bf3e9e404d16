#pragma once
// The parts of the page, embedded at build time (embed.cmake).

#include <string_view>

namespace rowtune::reports::page {

extern const std::string_view html;    ///< with @STYLE@, @DATA@, @D3@ and @SCRIPT@ to be filled
extern const std::string_view style;   ///< page.css
extern const std::string_view script;  ///< data.js, tables.js, charts.js, main.js
extern const std::string_view d3;      ///< D3, minified; empty when the build did not find it

}  // namespace rowtune::reports::page
