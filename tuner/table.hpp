#pragma once
// Records of one kind, printed as an aligned table, JSON or CSV from one list of columns.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace rowtune {

enum class Format { table, json, csv };
Format parse_format(std::string_view text);  ///< throws UsageError naming the three

struct Column {
  std::string name;            ///< the key in JSON and CSV
  std::string heading;         ///< in the table; empty: JSON and CSV only
  int decimals = -1;           ///< of numbers in the table; -1: four significant digits
  std::string_view unit = {};  ///< behind the number in the table, such as `%`
};

struct Table {
  std::vector<Column> columns;
  std::vector<std::vector<nlohmann::ordered_json>> rows;  ///< cells: string, number, bool or null

  std::string print(Format format) const;
};

}  // namespace rowtune
