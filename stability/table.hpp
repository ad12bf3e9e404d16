#pragma once
// A table of strings, printed for people (aligned), as Markdown, CSV or JSON.

#include <string>
#include <vector>

namespace rowtune::stability {

struct Table {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;  ///< as long as `columns`
};

enum class TableFormat { text, csv, json };
TableFormat parse_table_format(const std::string& name);  ///< table, csv, json; throws UsageError

std::string as_text(const Table& table);
std::string as_markdown(const Table& table);
std::string as_csv(const Table& table);
/// An array of objects; cells that are JSON numbers as numbers, empty ones as null, others as strings.
std::string as_json(const Table& table);
std::string render(const Table& table, TableFormat format);

}  // namespace rowtune::stability
