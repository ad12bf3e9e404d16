// The page, as far as it can be judged without a browser: whole, self-contained, safe, and with all the data.

#include <nlohmann/json.hpp>
#include <sstream>

#include "reports/page/page.hpp"
#include "reports/report.hpp"
#include "reports/tests/fixture.hpp"

namespace rowtune::reports::test {
namespace {

class HtmlTest : public db::test::DatabaseTest {
 protected:
  db::Database database = open();
  std::string html() const {
    std::ostringstream out;
    write_html(database, out);
    return out.str();
  }
  static std::string payload_text(const std::string& page) {
    const std::string begin = "id=\"payload\">";
    const auto at = page.find(begin) + begin.size();
    return page.substr(at, page.find("</script>", at) - at);
  }
  static std::size_t count(const std::string& text, const std::string& part) {
    std::size_t n = 0;
    for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
    return n;
  }
};

TEST_F(HtmlTest, IsAWholePage) {
  const auto page = html();
  EXPECT_EQ(page.find("<!DOCTYPE html>"), 0u);
  EXPECT_NE(page.find("</html>"), std::string::npos);
  for (const char* part : {"@STYLE@", "@DATA@", "@D3@", "@SCRIPT@"})
    EXPECT_EQ(page.find(part), std::string::npos) << part << " was not filled";
  EXPECT_EQ(count(page, "<script"), 3u);
  EXPECT_EQ(count(page, "</script>"), 3u);
  EXPECT_NE(page.find(page::style), std::string::npos);
  EXPECT_NE(page.find(page::script), std::string::npos);
}

TEST_F(HtmlTest, LoadsNothingFromANetwork) {
  database.record_all(grid("Test GPU"));
  const auto page = html();
  for (const char* part : {"src=", "<link", "@import", "url(", "fetch(", "XMLHttpRequest("}) {
    const auto ours = std::string(page::html) + std::string(page::style) + std::string(page::script);
    EXPECT_EQ(ours.find(part), std::string::npos) << part;
  }
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos) << "and the browser is told to load nothing";
}

TEST_F(HtmlTest, ScriptsNeverTurnTextIntoMarkup) {
  for (const char* part : {"innerHTML", "outerHTML", "insertAdjacentHTML", ".html(", "document.write", "eval("})
    EXPECT_EQ(page::script.find(part), std::string_view::npos) << part;
}

TEST_F(HtmlTest, TheDataIsAllThere) {
  database.record_all(grid("Test GPU"));
  const auto data = nlohmann::json::parse(payload_text(html()));
  EXPECT_EQ(data["workloads"].size(), 120u);
  EXPECT_EQ(data["rows"].size(), 630u);
  EXPECT_FALSE(data["empty"].get<bool>());
  std::size_t winners = 0;
  for (const auto& row : data["rows"]) {
    ASSERT_EQ(row.size(), 20u);
    EXPECT_LT(row[0].get<std::size_t>(), data["workloads"].size());
    for (const int name : {1, 2, 12, 13, 19})
      EXPECT_LT(row[static_cast<std::size_t>(name)].get<std::size_t>(), data["names"].size());
    winners += std::size_t(row[7] == 1);
  }
  EXPECT_EQ(winners, 120u);
}

TEST_F(HtmlTest, HostileTextCannotLeaveTheData) {
  const std::string hostile = "</script><script>alert(1)</script><!-- & \xe2\x80\xa8 \xff \"'";
  auto m = base(measured(db::test::softmax(), hostile, 10));
  m.key.device_model = hostile;
  m.outcome = Outcome::crash;
  m.message = hostile;
  database.record(m);
  const auto page = html();
  EXPECT_EQ(count(page, "<script"), 3u);
  EXPECT_EQ(page.find("alert(1)<"), std::string::npos);
  const auto text = payload_text(page);
  EXPECT_EQ(text.find('<'), std::string::npos);
  EXPECT_TRUE(std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; }));
  const auto data = nlohmann::json::parse(text);
  EXPECT_EQ(data["workloads"][0]["device_model"].get<std::string>().substr(0, 40), hostile.substr(0, 40));
}

TEST_F(HtmlTest, AnEmptyDatabaseGivesAPageThatSaysHowToFillIt) {
  const auto data = nlohmann::json::parse(payload_text(html()));
  EXPECT_TRUE(data["empty"].get<bool>());
  EXPECT_TRUE(data["workloads"].empty());
  EXPECT_FALSE(data["next"].empty());
}

TEST_F(HtmlTest, TheSameDatabaseGivesTheSameBytes) {
  database.record_all(grid("Test GPU"));
  EXPECT_TRUE(html() == html());
}

}  // namespace
}  // namespace rowtune::reports::test
