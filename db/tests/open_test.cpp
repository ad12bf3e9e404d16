// Which files are opened, which are refused, and that a refused file stays as it was.

#include "db/open.hpp"

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "db/tests/fixture.hpp"

namespace rowtune::db::test {
namespace {

using Mode = Database::Mode;

class OpenTest : public DatabaseTest {
 protected:
  void make_foreign(const std::string& journal) {
    SQLite::Database db(path, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
    db.exec("PRAGMA journal_mode = " + journal);
    db.exec("CREATE TABLE t (x)");
    db.exec("INSERT INTO t VALUES (1)");
  }
  void make_ours() { open().record(base(measured(softmax(), "block.b256", 1))); }
  void execute(const std::string& sql) { SQLite::Database(path, SQLite::OPEN_READWRITE).exec(sql); }

  /// Both modes refuse with all these words, and no byte of the folder changes.
  void expect_refused(const std::vector<std::string>& words,
                      std::vector<Mode> modes = {Mode::read_only, Mode::read_write}) {
    for (const auto mode : modes) {
      const auto before = contents();
      try {
        open(mode);
        ADD_FAILURE() << "was not refused";
      } catch (const EnvironmentError& error) {
        for (const auto& word : words)
          EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << "'" << word << "' in: " << error.what();
        EXPECT_NE(std::string(error.what()).find(path), std::string::npos) << error.what();
      }
      EXPECT_TRUE(contents() == before) << "a refused file and its folder stay as they were";
    }
  }
  std::map<std::string, std::string> contents() const {
    std::map<std::string, std::string> all;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
      all[entry.path().filename()] = entry.is_regular_file() ? bytes_of(entry.path()) : "";
    return all;
  }
};

TEST_F(OpenTest, MakesAFileThatIsMarkedAsOurs) {
  make_ours();
  SQLite::Database raw(path, SQLite::OPEN_READONLY);
  EXPECT_EQ(raw.execAndGet("PRAGMA application_id").getInt(), application_id);
  EXPECT_EQ(raw.execAndGet("PRAGMA user_version").getInt(), newest_schema());
  EXPECT_EQ(raw.execAndGet("PRAGMA journal_mode").getString(), "wal");
}

TEST_F(OpenTest, OpensAgainReadsAndWrites) {
  make_ours();
  EXPECT_EQ(open(Mode::read_only).measurement_count(), 1);
  EXPECT_EQ(open(Mode::read_only).best({}).size(), 1u);
  EXPECT_TRUE(open().record(measured(softmax(), "warp.b128", 1)));
  EXPECT_EQ(open().measurement_count(), 2);
}

TEST_F(OpenTest, AnEmptyFileBecomesOursOnWriting) {
  std::ofstream(path).flush();
  expect_refused({"empty", "rowtune tune"}, {Mode::read_only});
  make_ours();
  EXPECT_EQ(open(Mode::read_only).measurement_count(), 1);
}

TEST_F(OpenTest, MissingFileIsRefusedForReading) {
  expect_refused({"does not exist", "rowtune tune"}, {Mode::read_only});
}

TEST_F(OpenTest, MissingFolderIsRefused) {
  path = folder.file("no/such/folder/t.db");
  expect_refused({"does not exist"});
}

TEST_F(OpenTest, FolderIsRefused) {
  path = folder.path().string();
  expect_refused({"is a folder"});
}

TEST_F(OpenTest, ForeignDatabaseIsRefused) {
  make_foreign("DELETE");
  expect_refused({"another program", "--db"});
}

TEST_F(OpenTest, ForeignDatabaseWithALogIsRefused) {
  make_foreign("WAL");
  expect_refused({"another program", "--db"});
}

TEST_F(OpenTest, ForeignDatabaseInUseWithALogIsRefused) {
  SQLite::Database user(path, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
  user.exec("PRAGMA journal_mode = WAL");
  user.exec("CREATE TABLE t (x)");
  ASSERT_GT(std::filesystem::file_size(path + "-wal"), 0u);
  expect_refused({"another program", "--db"});
}

TEST_F(OpenTest, ForeignApplicationIdWithoutTablesIsRefused) {
  SQLite::Database(path, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE).exec("PRAGMA application_id = 7");
  expect_refused({"another program"});
}

TEST_F(OpenTest, TextFileIsRefused) {
  std::ofstream(path) << "not a database\nnot a database\n";
  expect_refused({"not a database"});
}

TEST_F(OpenTest, ShortTextFileIsRefused) {
  std::ofstream(path) << "x";
  expect_refused({"not a database"});
}

TEST_F(OpenTest, TruncatedFileIsRefused) {
  make_ours();
  const auto size = std::filesystem::file_size(path);
  ASSERT_GT(size, 16384u);
  std::filesystem::resize_file(path, size / 2);
  expect_refused({"damaged"});
}

TEST_F(OpenTest, FileCutWithinTheHeaderIsRefused) {
  make_ours();
  std::filesystem::resize_file(path, 50);
  expect_refused({path});
}

TEST_F(OpenTest, NewerSchemaIsRefused) {
  make_ours();
  execute("PRAGMA user_version = 1000");
  expect_refused({"schema 1000", "newer rowtune"});
}

TEST_F(OpenTest, ReadingLeavesNothingBehind) {
  make_ours();
  const auto before = contents();
  open(Mode::read_only).best({});
  EXPECT_TRUE(contents() == before);
  EXPECT_EQ(before.size(), 1u) << "nor does writing, once the file is closed";
}

TEST_F(OpenTest, AReaderCannotWrite) {
  make_ours();
  auto db = open(Mode::read_only);
  EXPECT_THROW(db.record(measured(softmax(), "warp.b128", 1)), EnvironmentError);
  EXPECT_EQ(db.measurement_count(), 1);
}

/// Permissions bind nobody but root, so these tests step down when they run as root.
class PermissionTest : public OpenTest {
 protected:
  void SetUp() override {
    make_ours();
    chmod(folder.path().c_str(), 0777);
    if (geteuid() == 0 && chown(path.c_str(), nobody, nobody) != 0) FAIL() << "cannot give the file away";
  }
  template <class Body>
  void as_nobody(Body body) {
    const auto before = geteuid();
    if (before == 0 && seteuid(nobody) != 0) FAIL() << "cannot step down";
    body();
    if (before == 0 && seteuid(before) != 0) FAIL() << "cannot step up again";
  }
  static constexpr uid_t nobody = 65534;
};

TEST_F(PermissionTest, ReadOnlyFileIsRefusedForWritingAndReads) {
  chmod(path.c_str(), 0444);
  as_nobody([&] {
    expect_refused({"read-only", "chmod"}, {Mode::read_write});
    EXPECT_EQ(open(Mode::read_only).measurement_count(), 1);
  });
}

TEST_F(PermissionTest, ReadOnlyFolderIsRefusedForWritingAndReads) {
  chmod(folder.path().c_str(), 0555);
  as_nobody([&] {
    expect_refused({"read-only", "folder"}, {Mode::read_write});
    const auto before = contents();
    EXPECT_EQ(open(Mode::read_only).measurement_count(), 1);
    EXPECT_EQ(open(Mode::read_only).best({}).size(), 1u);
    EXPECT_TRUE(contents() == before);
  });
  chmod(folder.path().c_str(), 0777);
}

TEST_F(PermissionTest, UnreadableFileIsRefused) {
  chmod(path.c_str(), 0000);
  as_nobody([&] {
    for (const auto mode : {Mode::read_only, Mode::read_write}) EXPECT_THROW(open(mode), EnvironmentError);
  });
}

TEST_F(OpenTest, NamesWithSpecialCharactersWork) {
  path = folder.file("50% of #1? ü.db");
  make_ours();
  EXPECT_EQ(open(Mode::read_only).measurement_count(), 1);
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST_F(OpenTest, WordsThatAreNotOursAreAnErrorOfTheFile) {
  make_ours();
  execute("UPDATE measurement SET outcome = 'vanished', time_us = NULL");
  execute("UPDATE workload SET op = 'transpose'");
  const auto expect = [&](const char* word, auto read) {
    try {
      read();
      ADD_FAILURE() << "took " << word;
    } catch (const EnvironmentError& error) {
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("newer rowtune"), std::string::npos) << error.what();
    }
  };
  const auto db = open(Mode::read_only);
  const auto rows = db.leaderboard({});
  ASSERT_EQ(rows.size(), 1u);
  expect("unknown operation 'transpose'", [&] { rows[0].workload(); });
  execute("UPDATE workload SET op = 'softmax', cols = -1");
  expect("'-1'", [&] { open(Mode::read_only).leaderboard({}).at(0).workload(); });
  execute("UPDATE workload SET cols = 1000");
  expect("unknown outcome 'vanished'", [&] { db.measurements(key_of(softmax())); });
}

TEST_F(OpenTest, FullDiskSaysWhatWasSaved) {
  open();
  const auto pages = std::filesystem::file_size(path) / 4096;
  auto db = Database::open(path, Mode::read_write, {1000, std::int64_t(pages) + 20});
  int saved = 0;
  try {
    for (; saved < 100'000; ++saved) db.record(measured(softmax(), fmt::format("warp.b{}", saved), 1));
    FAIL() << "the limit did not hold";
  } catch (const EnvironmentError& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find("disk is full"), std::string::npos) << what;
    EXPECT_NE(what.find(fmt::format("the {} results recorded before are saved", saved)), std::string::npos) << what;
  }
  EXPECT_GT(saved, 0);
  EXPECT_EQ(db.measurement_count(), saved);
  EXPECT_EQ(open(Mode::read_only).measurement_count(), saved);
  EXPECT_TRUE(open().record(measured(softmax(), "warp.b0x", 1))) << "with room again, it goes on";
}

TEST(WriteAheadLogTest, IsForLocalFilesystems) {
  EXPECT_TRUE(allows_write_ahead_log(0xEF53)) << "ext4";
  EXPECT_TRUE(allows_write_ahead_log(0x58465342)) << "xfs";
  EXPECT_TRUE(allows_write_ahead_log(0x01021994)) << "tmpfs";
  EXPECT_TRUE(allows_write_ahead_log(0x794C7630)) << "overlayfs";
  EXPECT_FALSE(allows_write_ahead_log(0x6969)) << "nfs";
  EXPECT_FALSE(allows_write_ahead_log(0xFF534D42)) << "cifs";
  EXPECT_FALSE(allows_write_ahead_log(0xFE534D42)) << "smb2";
  EXPECT_FALSE(allows_write_ahead_log(static_cast<std::int32_t>(0xFE534D42))) << "smb2 where f_type is 32 bits";
  EXPECT_FALSE(allows_write_ahead_log(0x65735546)) << "fuse: sshfs and others";
}

TEST_F(OpenTest, PlainJournalWorksWhereTheLogCannot) {
  make_ours();
  execute("PRAGMA journal_mode = DELETE");
  SQLite::Database reader(path, SQLite::OPEN_READONLY);  // a reader at work keeps the mode from changing
  SQLite::Statement busy(reader, "SELECT * FROM measurement");
  busy.executeStep();
  auto db = Database::open(path, Mode::read_write, {100, 0});
  busy.reset();
  EXPECT_TRUE(db.record(measured(softmax(), "warp.b128", 1)));
  EXPECT_EQ(db.measurement_count(), 2);
}

}  // namespace
}  // namespace rowtune::db::test
