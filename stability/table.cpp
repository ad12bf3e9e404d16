#include "stability/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

#include "kernels/errors.hpp"
#include "stability/report_csv.hpp"

namespace rowtune::stability {
namespace {

nlohmann::ordered_json cell_as_json(const std::string& cell) {
  if (cell.empty()) return nullptr;
  double number = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), number);
  if (error != std::errc() || end != cell.data() + cell.size() || !std::isfinite(number)) return cell;
  if (cell.find_first_of(".eE") == std::string::npos && std::fabs(number) < 1e15) return static_cast<long long>(number);
  return number;
}

std::vector<std::size_t> widths(const Table& table) {
  std::vector<std::size_t> wide;
  for (const std::string& column : table.columns) wide.push_back(column.size());
  for (const auto& row : table.rows)
    for (std::size_t i = 0; i < row.size(); ++i) wide[i] = std::max(wide[i], row[i].size());
  return wide;
}

}  // namespace

TableFormat parse_table_format(const std::string& name) {
  if (name == "table") return TableFormat::text;
  if (name == "csv") return TableFormat::csv;
  if (name == "json") return TableFormat::json;
  throw UsageError(fmt::format("unknown format '{}'; choose from table, csv, json", name));
}

std::string as_text(const Table& table) {
  const std::vector<std::size_t> wide = widths(table);
  std::string text;
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string out;
    for (std::size_t i = 0; i < cells.size(); ++i)
      fmt::format_to(std::back_inserter(out), "{:<{}}{}", cells[i], wide[i], i + 1 < cells.size() ? "  " : "");
    out.erase(out.find_last_not_of(' ') + 1);
    text += out + "\n";
  };
  line(table.columns);
  for (const auto& row : table.rows) line(row);
  return text;
}

std::string as_markdown(const Table& table) {
  std::string text = fmt::format("| {} |\n|", fmt::join(table.columns, " | "));
  for (std::size_t i = 0; i < table.columns.size(); ++i) text += " --- |";
  text += "\n";
  for (const auto& row : table.rows) text += fmt::format("| {} |\n", fmt::join(row, " | "));
  return text;
}

std::string as_csv(const Table& table) {
  std::string text;
  const auto line = [&](const std::vector<std::string>& cells) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (i > 0) text += ',';
      text += csv_field(cells[i]);
    }
    text += "\n";
  };
  line(table.columns);
  for (const auto& row : table.rows) line(row);
  return text;
}

std::string as_json(const Table& table) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const auto& row : table.rows) {
    nlohmann::ordered_json object;
    for (std::size_t i = 0; i < row.size(); ++i) object[table.columns[i]] = cell_as_json(row[i]);
    list.push_back(std::move(object));
  }
  return list.dump(1) + "\n";
}

std::string render(const Table& table, TableFormat format) {
  return format == TableFormat::csv ? as_csv(table) : format == TableFormat::json ? as_json(table) : as_text(table);
}

}  // namespace rowtune::stability
