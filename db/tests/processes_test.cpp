// Several processes and one file: killed writers, writers at the same time.

#include <SQLiteCpp/SQLiteCpp.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "db/tests/fixture.hpp"

extern char** environ;

namespace rowtune::db::test {
namespace {

/// A running writer, its standard output at hand.
class Writer {
 public:
  Writer(const std::string& path, const std::string& prefix, int count) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    std::string program = ROWTUNE_TEST_WRITER, file = path, name = prefix, number = std::to_string(count);
    char* arguments[] = {program.data(), file.data(), name.data(), number.data(), nullptr};
    if (posix_spawn(&pid_, program.c_str(), &actions, nullptr, arguments, environ) != 0)
      throw std::runtime_error("cannot start " + program);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    output_ = fdopen(ends[0], "r");
  }
  ~Writer() {
    if (output_ != nullptr) std::fclose(output_);
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  /// The number of the next line; 0 when the output has ended.
  int next_committed() {
    int number = 0;
    return std::fscanf(output_, "%d", &number) == 1 ? number : 0;
  }
  void kill() { ::kill(pid_, SIGKILL); }
  int wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    return status;
  }

 private:
  pid_t pid_ = 0;
  std::FILE* output_ = nullptr;
};

class ProcessesTest : public DatabaseTest {};

TEST_F(ProcessesTest, KilledWriterLosesAtMostTheResultInFlight) {
  for (const int kill_after : {1, 2, 7, 30}) {
    const auto file = folder.file("killed" + std::to_string(kill_after) + ".db");
    Writer writer(file, "warp", 1'000'000);
    int committed = 0;
    while (committed < kill_after) {
      committed = writer.next_committed();
      ASSERT_NE(committed, 0) << "the writer ended by itself";
    }
    writer.kill();
    while (const int more = writer.next_committed()) committed = more;  // said before it died
    ASSERT_TRUE(WIFSIGNALED(writer.wait()));
    {
      auto db = Database::open(file, Database::Mode::read_write);
      EXPECT_GE(db.measurement_count(), committed);
      EXPECT_LE(db.measurement_count(), committed + 1) << "one commit may not have been said yet";
      EXPECT_TRUE(db.record(base(measured(softmax(), "block.b256", 1)))) << "and it goes on";
    }
    SQLite::Database raw(file, SQLite::OPEN_READONLY);
    EXPECT_EQ(raw.execAndGet("PRAGMA integrity_check").getString(), "ok");
  }
}

TEST_F(ProcessesTest, KilledWriterCanBeReadWithoutWriting) {
  Writer writer(path, "warp", 1'000'000);
  while (writer.next_committed() < 5) {
  }
  writer.kill();
  writer.wait();
  EXPECT_GE(open(Database::Mode::read_only).measurement_count(), 5);
}

TEST_F(ProcessesTest, TwoWritersOfOneFileWaitForEachOther) {
  Writer first(path, "first", 150), second(path, "second", 150);
  EXPECT_EQ(first.wait(), 0);
  EXPECT_EQ(second.wait(), 0);
  EXPECT_EQ(open().measurement_count(), 300);
}

TEST_F(ProcessesTest, ASecondConnectionOfAProcessLeavesTheLocksOfTheFirst) {
  auto db = open();
  db.record(measured(softmax(), "warp.b128", 1));
  open(Database::Mode::read_only);
  Writer other(path, "other", 1);
  ASSERT_EQ(other.wait(), 0);
  EXPECT_TRUE(std::filesystem::exists(path + "-wal")) << "the other process took itself for the last one";
  db.record(measured(softmax(), "warp.b256", 1));
  EXPECT_EQ(db.measurement_count(), 3);
}

TEST_F(ProcessesTest, AWriterWaitsAndThenSaysThatTheFileIsLocked) {
  open();
  SQLite::Database other(path, SQLite::OPEN_READWRITE);
  other.exec("BEGIN IMMEDIATE");
  auto db = Database::open(path, Database::Mode::read_write, {50, 0});
  try {
    db.record(measured(softmax(), "warp.b128", 1));
    FAIL() << "the file is locked";
  } catch (const EnvironmentError& error) {
    EXPECT_NE(std::string(error.what()).find("another process keeps it locked"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find(path), std::string::npos);
  }
  EXPECT_EQ(db.measurement_count(), 0) << "reading goes on";
  other.exec("ROLLBACK");
  EXPECT_TRUE(db.record(measured(softmax(), "warp.b128", 1)));
}

}  // namespace
}  // namespace rowtune::db::test
