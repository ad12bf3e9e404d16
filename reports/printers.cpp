#include "reports/printers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>
#include <ostream>

namespace rowtune::reports {
namespace {

/// Three to four significant digits, without an exponent where that stays readable.
std::string short_number(double value) {
  const double size = std::abs(value);
  if (value == 0) return "0";
  if (!std::isfinite(value)) return fmt::format("{}", value);
  if (size >= 1e7 || size < 1e-3) return fmt::format("{:.2e}", value);
  return fmt::format("{:.{}f}", value, size < 1 ? 4 : size < 10 ? 3 : size < 100 ? 2 : size < 1000 ? 1 : 0);
}

std::string plain(const Cell& cell) {
  struct {
    std::string operator()(std::monostate) const { return ""; }
    std::string operator()(const std::string& text) const { return text; }
    std::string operator()(std::int64_t number) const { return fmt::format("{}", number); }
    std::string operator()(double number) const { return fmt::format("{}", number); }
    std::string operator()(bool flag) const { return flag ? "true" : "false"; }
  } visitor;
  return std::visit(visitor, cell);
}

bool is_number(Style style) { return style != Style::text && style != Style::flag; }

/// Characters, not bytes: continuation bytes of UTF-8 take no room.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

/// Line breaks and control characters would break a row of a table.
std::string one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  return text;
}

struct Grid {
  std::vector<std::string> titles;
  std::vector<bool> numbers;  ///< aligned to the right
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> same;  ///< `dtype: bf16`, of the columns left out
};

Grid grid_of(const Sheet& sheet, const TableStyle& style) {
  const auto unit = choose_unit(sheet, style.unit);
  Grid grid;
  grid.rows.resize(sheet.rows.size());
  for (std::size_t i = 0; i < sheet.heads.size(); ++i) {
    const auto& head = sheet.heads[i];
    if (head.hidden) continue;
    const bool same = sheet.rows.size() > 1 && std::all_of(sheet.rows.begin(), sheet.rows.end(),
                                                           [&](const auto& row) { return row[i] == sheet.rows[0][i]; });
    if (style.only_varying && same) {
      if (!std::holds_alternative<std::monostate>(sheet.rows[0][i]))
        grid.same.push_back(
            fmt::format("{}: {}", title_of(head, unit), one_line(text_of(sheet.rows[0][i], head.style, unit))));
      continue;
    }
    grid.titles.push_back(title_of(head, unit));
    grid.numbers.push_back(is_number(head.style));
    for (std::size_t r = 0; r < sheet.rows.size(); ++r)
      grid.rows[r].push_back(one_line(text_of(sheet.rows[r][i], head.style, unit)));
  }
  return grid;
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

}  // namespace

std::string text_of(const Cell& cell, Style style, TimeUnit unit) {
  if (std::holds_alternative<std::monostate>(cell)) return "-";
  if (const auto* flag = std::get_if<bool>(&cell)) return *flag ? "yes" : "no";
  if (const auto* number = std::get_if<double>(&cell)) {
    if (!std::isfinite(*number)) return fmt::format("{}", *number);
    switch (style) {
      case Style::time:
        return short_number(unit == TimeUnit::ms ? *number / 1e3 : *number);
      case Style::rate:
        return fmt::format("{:.{}f}", *number, *number < 100 ? 1 : 0);
      case Style::fraction:
        return fmt::format("{:.1f} %", 100 * *number);
      case Style::ratio:
        return fmt::format("{:.2f}x", *number);
      default:
        return short_number(*number);
    }
  }
  return plain(cell);
}

TimeUnit choose_unit(const Sheet& sheet, TimeUnit wish) {
  if (wish != TimeUnit::automatic) return wish;
  bool any = false;
  for (std::size_t i = 0; i < sheet.heads.size(); ++i) {
    if (sheet.heads[i].style != Style::time || sheet.heads[i].hidden) continue;
    for (const auto& row : sheet.rows) {
      const auto* time = std::get_if<double>(&row[i]);
      if (time == nullptr) continue;
      any = true;
      if (*time < 10'000) return TimeUnit::us;
    }
  }
  return any ? TimeUnit::ms : TimeUnit::us;
}

std::string title_of(const Head& head, TimeUnit unit) {
  const auto& title = head.title.empty() ? head.name : head.title;
  if (head.style == Style::time) return fmt::format("{} ({})", title, unit == TimeUnit::ms ? "ms" : "us");
  if (head.unit.empty() || head.unit == title) return title;
  return fmt::format("{} ({})", title, head.unit);
}

void print_table(const Sheet& sheet, std::ostream& out, const TableStyle& style) {
  const auto grid = grid_of(sheet, style);
  for (const auto& line : grid.same) out << line << '\n';
  std::vector<std::size_t> widths;
  for (const auto& title : grid.titles) widths.push_back(width_of(title));
  for (const auto& row : grid.rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  const auto print_row = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::string padding(widths[i] - width_of(cells[i]), ' ');
      if (i > 0) line += "  ";
      line += grid.numbers[i] ? padding + cells[i] : cells[i] + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out << line << '\n';
  };
  if (style.bold_heads) out << "\x1b[1m";
  print_row(grid.titles);
  if (style.bold_heads) out << "\x1b[0m";
  for (const auto& row : grid.rows) print_row(row);
}

void print_markdown(const Sheet& sheet, std::ostream& out, const TableStyle& style) {
  const auto grid = grid_of(sheet, style);
  for (const auto& line : grid.same) out << escape_markdown(line) << "  \n";
  if (!grid.same.empty()) out << '\n';
  const auto print_row = [&](const std::vector<std::string>& cells) {
    out << '|';
    for (const auto& text : cells) out << ' ' << escape_markdown(text) << " |";
    out << '\n';
  };
  print_row(grid.titles);
  out << '|';
  for (const bool number : grid.numbers) out << (number ? " ---: |" : " --- |");
  out << '\n';
  for (const auto& row : grid.rows) print_row(row);
}

void print_csv(const Sheet& sheet, std::ostream& out) {
  const auto end_of = [&](std::size_t i) { return i + 1 == sheet.heads.size() ? "\r\n" : ","; };
  for (std::size_t i = 0; i < sheet.heads.size(); ++i) out << csv_field(sheet.heads[i].name) << end_of(i);
  for (const auto& row : sheet.rows)
    for (std::size_t i = 0; i < row.size(); ++i) out << csv_field(plain(row[i])) << end_of(i);
}

std::string json_of(const Sheet& sheet) {
  using Json = nlohmann::ordered_json;
  Json list = Json::array();
  for (const auto& row : sheet.rows) {
    Json object = Json::object();
    for (std::size_t i = 0; i < row.size(); ++i)
      object[sheet.heads[i].name] = std::visit(
          [](const auto& value) -> Json {
            using T = std::decay_t<decltype(value)>;
            if constexpr (std::is_same_v<T, std::monostate>)
              return nullptr;
            else if constexpr (std::is_same_v<T, double>)
              return std::isfinite(value) ? Json(value) : Json(nullptr);
            else
              return value;
          },
          row[i]);
    list.push_back(std::move(object));
  }
  return list.dump(2, ' ', false, Json::error_handler_t::replace);
}

void print_json(const Sheet& sheet, std::ostream& out) { out << json_of(sheet) << '\n'; }

std::string escape_markdown(const std::string& text) {
  std::string out;
  const auto line = one_line(text);
  const auto is_word = [&](std::size_t i) {
    return i < line.size() && std::isalnum(static_cast<unsigned char>(line[i]));
  };
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '_' && is_word(i - 1) && is_word(i + 1))
      out += c;  // inside a word it is no emphasis: fused_add_rmsnorm stays readable
    else if (std::string_view("\\`*_[]|~").find(c) != std::string_view::npos)
      out += {'\\', c};
    else
      out += c;
  }
  return out;
}

}  // namespace rowtune::reports
