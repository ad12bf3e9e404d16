#pragma once
// One field list for each kind of record: name, unit, description, how to format, whether people see it. Every
// printer (terminal, Markdown, CSV, JSON, page) obeys the same list.

#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "db/records.hpp"

namespace rowtune::reports {

/// A value of a record; monostate is "not known" (NULL in the database).
using Cell = std::variant<std::monostate, std::string, std::int64_t, double, bool>;

/// How people see a value. CSV and JSON always carry the number itself, in the unit of the field.
enum class Style {
  text,
  count,     ///< 1234
  time,      ///< microseconds: 12.34, or milliseconds where all of a column is large
  rate,      ///< GB/s: 1234
  fraction,  ///< 0.934 shown as 93.4 %
  ratio,     ///< 1.52 shown as 1.52x
  error,     ///< ulps: 0.503
  flag       ///< yes, no
};

struct Head {
  std::string name;         ///< key in JSON and CSV
  std::string title;        ///< in tables; the name when empty
  std::string unit;         ///< `us`, `GB/s`, `ulp`; empty: none
  std::string description;  ///< one sentence, for help and pages
  Style style = Style::text;
  bool hidden = false;  ///< not in tables for people, unless asked by name
};

template <class Row>
struct Field {
  Head head;
  std::function<Cell(const Row&)> value;
};

/// Records as cells: what printers take.
struct Sheet {
  std::vector<Head> heads;
  std::vector<std::vector<Cell>> rows;
};

template <class Row>
Sheet sheet_of(const std::vector<Field<Row>>& fields, const std::vector<Row>& records) {
  Sheet sheet;
  for (const auto& field : fields) sheet.heads.push_back(field.head);
  for (const auto& record : records) {
    auto& cells = sheet.rows.emplace_back();
    for (const auto& field : fields) cells.push_back(field.value(record));
  }
  return sheet;
}

/// Only these columns, in this order. Throws UsageError naming the choices.
Sheet select(const Sheet& sheet, const std::vector<std::string>& names);

/// The keys of `best --format json` in the order of the view, then the others.
const std::vector<Field<db::BestRow>>& best_fields();
const std::vector<Field<db::Failure>>& failure_fields();
const std::vector<Field<db::Coverage>>& coverage_fields();
const std::vector<Field<db::BaselineRow>>& baseline_fields();
const std::vector<Field<db::AccuracyRow>>& accuracy_fields();
const std::vector<Field<db::StabilityRow>>& stability_fields();

}  // namespace rowtune::reports
