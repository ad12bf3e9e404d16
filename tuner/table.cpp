#include "tuner/table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/errors.hpp"

namespace rowtune {
namespace {

using Cell = nlohmann::ordered_json;

std::string plain(const Cell& cell) {  // CSV: numbers as they are, nothing for null
  if (cell.is_null()) return "";
  return cell.is_string() ? cell.get<std::string>() : cell.dump();
}

std::string csv_cell(const Cell& cell) {
  std::string text = plain(cell);
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  for (std::size_t at = text.find('"'); at != std::string::npos; at = text.find('"', at + 2)) text.insert(at, 1, '"');
  return fmt::format("\"{}\"", text);
}

std::string table_cell(const Cell& cell, const Column& column) {
  if (cell.is_null()) return "-";
  if (cell.is_boolean()) return cell.get<bool>() ? "yes" : "no";
  std::string text;
  if (cell.is_number_float())
    text = column.decimals >= 0 ? fmt::format("{:.{}f}", cell.get<double>(), column.decimals)
                                : fmt::format("{:.4g}", cell.get<double>());
  else
    text = plain(cell);
  if (cell.is_number() && !column.unit.empty()) text += fmt::format(" {}", column.unit);
  return text;
}

std::string as_table(const Table& table) {
  const std::size_t n = table.columns.size();
  std::vector<std::vector<std::string>> cells(1);
  std::vector<bool> right(n, false);
  std::vector<std::size_t> width(n, 0);
  for (const Column& column : table.columns) cells[0].push_back(column.heading);
  for (const auto& row : table.rows) {
    cells.emplace_back();
    for (std::size_t i = 0; i < n; ++i) {
      cells.back().push_back(table_cell(row[i], table.columns[i]));
      right[i] = right[i] || row[i].is_number();
    }
  }
  for (const auto& row : cells)
    for (std::size_t i = 0; i < n; ++i) width[i] = std::max(width[i], row[i].size());
  std::string out;
  for (const auto& row : cells) {
    std::string line;
    for (std::size_t i = 0; i < n; ++i) {
      if (table.columns[i].heading.empty()) continue;
      if (!line.empty()) line += "  ";
      line += right[i] ? fmt::format("{:>{}}", row[i], width[i]) : fmt::format("{:<{}}", row[i], width[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

}  // namespace

Format parse_format(std::string_view text) {
  if (text == "table") return Format::table;
  if (text == "json") return Format::json;
  if (text == "csv") return Format::csv;
  throw UsageError(fmt::format("unknown format '{}'; choose from table, json, csv", text));
}

std::string Table::print(Format format) const {
  if (format == Format::table) return as_table(*this);
  if (format == Format::json) {
    Cell list = Cell::array();
    for (const auto& row : rows) {
      Cell object = Cell::object();
      for (std::size_t i = 0; i < columns.size(); ++i) object[columns[i].name] = row[i];
      list.push_back(std::move(object));
    }
    return list.dump(2) + "\n";
  }
  std::string out;
  for (std::size_t i = 0; i < columns.size(); ++i) out += fmt::format("{}{}", i ? "," : "", columns[i].name);
  out += "\n";
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < columns.size(); ++i) out += fmt::format("{}{}", i ? "," : "", csv_cell(row[i]));
    out += "\n";
  }
  return out;
}

}  // namespace rowtune
