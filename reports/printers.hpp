#pragma once
// Printers of sheets: for a terminal, for Markdown, as CSV (RFC 4180), as JSON. They know no record.

#include <iosfwd>
#include <string>

#include "reports/fields.hpp"

namespace rowtune::reports {

enum class TimeUnit { automatic, us, ms };  ///< automatic: ms when every time of the sheet is at least 10 ms

struct TableStyle {
  TimeUnit unit = TimeUnit::automatic;
  bool only_varying = false;  ///< columns that are the same in every row are said once, above
  bool bold_heads = false;    ///< print_table: titles in bold, for a terminal
};

/// What people see in a cell; `-` for what is not known. `unit`: not automatic.
std::string text_of(const Cell& cell, Style style, TimeUnit unit);
TimeUnit choose_unit(const Sheet& sheet, TimeUnit wish);
/// `time (us)`, `GB/s`, `config`.
std::string title_of(const Head& head, TimeUnit unit);

void print_table(const Sheet& sheet, std::ostream& out, const TableStyle& style = {});
void print_markdown(const Sheet& sheet, std::ostream& out, const TableStyle& style = {});
/// Header line, CRLF; unknown is empty; numbers with the digits that read back the same; hidden columns included.
void print_csv(const Sheet& sheet, std::ostream& out);
/// Array of objects; unknown, NaN and infinite are null; hidden columns included.
void print_json(const Sheet& sheet, std::ostream& out);
std::string json_of(const Sheet& sheet);

/// Text that means itself in Markdown, in a table cell too.
std::string escape_markdown(const std::string& text);

}  // namespace rowtune::reports
