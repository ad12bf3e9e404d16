// The migrations: from a file of every older schema to today's, one transaction each.

#include "db/schema.hpp"

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>

#include "db/open.hpp"
#include "db/tests/fixture.hpp"

namespace rowtune::db::test {
namespace {

class MigrationTest : public DatabaseTest {
 protected:
  static int version_of(const std::string& file) {
    return SQLite::Database(file, SQLite::OPEN_READONLY).execAndGet("PRAGMA user_version").getInt();
  }
  static std::vector<Migration> two_more(bool second_fails) {
    auto list = migrations();
    const int newest = list.back().version;
    list.push_back({newest + 1, [](SQLite::Database& db) { db.exec("ALTER TABLE sample ADD COLUMN extra TEXT"); }});
    list.push_back({newest + 2, [second_fails](SQLite::Database& db) {
                      db.exec("CREATE TABLE later (x INTEGER) STRICT");
                      if (second_fails) db.exec("CREATE TABLE later (x INTEGER) STRICT");
                    }});
    return list;
  }
  static int count(const std::string& file, const std::string& name) {
    return SQLite::Database(file, SQLite::OPEN_READONLY)
        .execAndGet(fmt::format("SELECT count(*) FROM sqlite_schema WHERE name = '{}'", name))
        .getInt();
  }
};

TEST_F(MigrationTest, VersionsAscendFromOne) {
  int expected = 1;
  for (const auto& step : migrations()) EXPECT_EQ(step.version, expected++);
}

TEST_F(MigrationTest, AnOlderFileIsBroughtToTheNewestVersionWithItsRows) {
  open().record(base(measured(softmax(), "block.b256", 5)));
  open_connection(path, Database::Mode::read_write, {}, two_more(false));
  EXPECT_EQ(version_of(path), newest_schema() + 2);
  EXPECT_EQ(count(path, "later"), 1);
  SQLite::Database raw(path, SQLite::OPEN_READONLY);
  EXPECT_EQ(raw.execAndGet("SELECT config FROM best").getString(), "block.b256") << "and its views are back";
}

TEST_F(MigrationTest, AnOlderFileIsNotReadWithoutMigration) {
  open();
  try {
    open_connection(path, Database::Mode::read_only, {}, two_more(false));
    FAIL() << "read an older schema";
  } catch (const EnvironmentError& error) {
    EXPECT_NE(std::string(error.what()).find("older schema"), std::string::npos) << error.what();
  }
  EXPECT_EQ(version_of(path), newest_schema());
}

TEST_F(MigrationTest, AFailingMigrationLeavesTheVersionBeforeIt) {
  open().record(base(measured(softmax(), "block.b256", 5)));
  EXPECT_THROW(open_connection(path, Database::Mode::read_write, {}, two_more(true)), EnvironmentError);
  EXPECT_EQ(version_of(path), newest_schema() + 1) << "the first one stands";
  EXPECT_EQ(count(path, "later"), 0) << "nothing of the second one does";
  open_connection(path, Database::Mode::read_write, {}, two_more(false));
  EXPECT_EQ(version_of(path), newest_schema() + 2);
  EXPECT_EQ(count(path, "best"), 1);
}

TEST_F(MigrationTest, ViewsOfAnyNameGiveWayToAMigration) {
  open();
  SQLite::Database(path, SQLite::OPEN_READWRITE).exec(R"(CREATE VIEW "a ""b"" 'c'" AS SELECT * FROM sample)");
  open_connection(path, Database::Mode::read_write, {}, two_more(false));
  EXPECT_EQ(version_of(path), newest_schema() + 2);
}

TEST_F(MigrationTest, AMigrationRunsOnce) {
  open();
  int runs = 0;
  auto list = migrations();
  list.push_back({newest_schema() + 1, [&runs](SQLite::Database&) { ++runs; }});
  for (int i = 0; i < 3; ++i) open_connection(path, Database::Mode::read_write, {}, list);
  EXPECT_EQ(runs, 1);
}

/// Files as older programs wrote them: every one must open, and give the rows that it has.
TEST_F(MigrationTest, FilesOfEveryOlderSchemaOpen) {
  for (int version = 1; version <= newest_schema(); ++version) {
    const auto fixture = fmt::format("{}/v{}.db", ROWTUNE_TEST_FIXTURES, version);
    ASSERT_TRUE(std::filesystem::exists(fixture)) << fixture;
    const auto copy = folder.file(fmt::format("v{}.db", version));
    std::filesystem::copy_file(fixture, copy);
    ASSERT_EQ(version_of(copy), version);
    auto db = Database::open(copy, Database::Mode::read_write);
    EXPECT_EQ(db.measurement_count(), 5);
    const auto best = db.best({});
    ASSERT_EQ(best.size(), 2u);
    EXPECT_EQ(best[0].op, "copy");
    EXPECT_EQ(best[1].config, "warp.b128.r1.v8.s1");
    EXPECT_DOUBLE_EQ(best[1].ceiling_fraction.value(), 0.8);
    EXPECT_EQ(db.failures().size(), 1u);
    EXPECT_EQ(db.decision(key_of(softmax())).value().key.config, "warp.b128.r1.v8.s1");
    EXPECT_EQ(db.stability().size(), 1u);
    EXPECT_EQ(db.accuracy().size(), 1u);
    EXPECT_EQ(db.baselines().size(), 1u);
  }
}

}  // namespace
}  // namespace rowtune::db::test
