// The built program in hostile surroundings: names that are no files, names that look like SQL or options, files of
// other versions, disks that fill up, locales that write numbers otherwise.

#include <sys/mount.h>
#include <sys/stat.h>

#include <set>

#include "tuner/tests/cli_fixture.hpp"

namespace rowtune {
namespace {

std::string quoted(const std::string& word) {
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

void execute(const fs::path& path, const char* sql) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(db, sql, nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
  sqlite3_close(db);
}

class Hostile : public Cli {
 protected:
  /// Every command that opens a database refuses this one, with exit code 3 and its name, and without waiting.
  void expect_refused(const std::string& name, const std::string& word) {
    const std::string db = " --db " + quoted(name);
    for (const std::string& words : {small_tune + db, "best --op softmax" + db, "report --out r.md" + db,
                                     "dispatch --out d" + db, "merge " + quoted(name) + " --db into.db"}) {
      const Result result = run(words);
      EXPECT_EQ(result.code, 3) << words << "\n" << result.err;
      EXPECT_EQ(result.out, "") << words;
      EXPECT_NE(result.err.find(word), std::string::npos) << words << "\n" << result.err;
    }
  }
};

TEST_F(Hostile, WhatIsNoFileIsNoDatabase) {
  ASSERT_EQ(mkfifo((folder_ / "fifo").c_str(), 0600), 0);  // opening it would wait for ever
  fs::create_directory(folder_ / "folder");
  expect_refused("folder", "is a folder");
  expect_refused("fifo", "is not a regular file");
  expect_refused("/dev/null", "is not a regular file");
  expect_refused("/dev/full", "is not a regular file");
  expect_refused(std::string(300, 'n'), "File name too long");
  fs::create_symlink("circle", folder_ / "circle");
  expect_refused("circle", "Too many levels");
}

TEST_F(Hostile, AnEmptyNameAndAMissingFolderAreRefused) {
  for (const char* name : {"''", "missing/folder/t.db", "../nowhere/t.db"})
    for (const std::string& words : {small_tune, std::string("best --op softmax")}) {
      const Result result = run(words + " --db " + name);
      EXPECT_EQ(result.code, 3) << words << name << result.err;
    }
}

TEST_F(Hostile, ANameIsNothingButAName) {
  const std::string names[] = {R"(it's; DROP TABLE "measurement";--.db)",
                               "new\nline.db",
                               "t.db?mode=memory&cache=shared",
                               "file:t.db?immutable=1",
                               ":memory:",
                               "%41#.db",
                               "-db"};
  ASSERT_EQ(run(small_tune + " --quiet --db first.db").code, 0);
  for (const std::string& name : names) {
    fs::copy_file(folder_ / "first.db", folder_ / name);
    const Result best = run("best --regime warm --op softmax --db=" + quoted(name));
    EXPECT_EQ(best.code, 0) << name << best.err;
    const Result merged = run("merge first.db --db=" + quoted(name));
    EXPECT_EQ(merged.code, 0) << name << merged.err;
    fs::remove(folder_ / name);
    const Result made = run("merge first.db --db=" + quoted(name));  // a new file
    EXPECT_EQ(made.code, 0) << name << made.err;
    EXPECT_TRUE(fs::is_regular_file(folder_ / name)) << name;
    EXPECT_EQ(integrity(name), "ok");
    EXPECT_GT(measurements(name), 0) << name;
    fs::remove(folder_ / name);
  }
  std::set<std::string> left;
  for (const auto& entry : fs::directory_iterator(folder_)) left.insert(entry.path().filename());
  EXPECT_EQ(left, (std::set<std::string>{"err", "first.db", "out"}));
}

TEST_F(Hostile, AFileOfANewerProgramIsLeftAsItIs) {
  fs::copy_file(fs::path(ROWTUNE_DB_FIXTURES) / "v1.db", folder_ / "t.db");
  execute(folder_ / "t.db", "PRAGMA user_version = 9999");
  const std::string before = read_file(folder_ / "t.db");
  expect_refused("t.db", "newer rowtune");
  EXPECT_EQ(read_file(folder_ / "t.db"), before);
}

TEST_F(Hostile, FilesOfEveryOlderProgramAreTakenOn) {
  for (const auto& fixture : fs::directory_iterator(ROWTUNE_DB_FIXTURES)) {
    const std::string name = fixture.path().filename();
    fs::copy_file(fixture.path(), folder_ / name);
    const Result tuned =
        run("tune --device cpu --op copy --dtype f32 --shapes 4x64 --regime warm --quiet --db " + name);
    EXPECT_EQ(tuned.code, 0) << name << tuned.err;
    const Result best = run("best --op softmax --format csv --db " + name);
    EXPECT_EQ(best.code, 0) << name << best.err;
    EXPECT_NE(best.out.find("warp.b128.r1.v8.s1"), std::string::npos) << name << best.out;
  }
}

/// A disk of the test's own; only root may have one.
class SmallDisk {
 public:
  explicit SmallDisk(fs::path place) : place_(std::move(place)) {
    fs::create_directory(place_);
    mounted_ = mount("tmpfs", place_.c_str(), "tmpfs", 0, "size=768k,mode=777") == 0;
  }
  ~SmallDisk() {
    if (mounted_) umount2(place_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  bool mounted() const { return mounted_; }
  void grow() { ASSERT_EQ(mount("tmpfs", place_.c_str(), "tmpfs", MS_REMOUNT, "size=64m"), 0); }
  void fill() {
    std::ofstream file(place_ / "filler");
    while (file << std::string(4096, 'x') && file.flush()) {
    }
  }

 private:
  fs::path place_;
  bool mounted_ = false;
};

TEST_F(Hostile, AFullDiskLosesNothingThatWasSaved) {
  SmallDisk disk(folder_ / "disk");
  if (!disk.mounted()) GTEST_SKIP() << "only root can mount a small disk";
  const std::string tune = longer_tune + " --no-final --db disk/t.db";
  const Result full = run(tune);
  EXPECT_EQ(full.code, 3) << full.err;
  EXPECT_NE(full.err.find("disk is full"), std::string::npos) << full.err;
  EXPECT_NE(full.err.find("saved"), std::string::npos) << full.err;
  EXPECT_EQ(integrity("disk/t.db"), "ok");
  const std::int64_t saved = measurements("disk/t.db");
  EXPECT_GT(saved, 0);
  disk.grow();
  const Result next = run(tune + " --budget 1s");
  EXPECT_EQ(next.code, 0) << next.err;
  EXPECT_GE(measurements("disk/t.db"), saved);
}

TEST_F(Hostile, WhatDoesNotFitOnTheDiskIsNotHalfWritten) {
  ASSERT_EQ(run(small_tune + " --quiet --db t.db").code, 0);
  std::ofstream(folder_ / "numbers.txt") << "1.5 2.25 1e-3\n";
  SmallDisk disk(folder_ / "disk");
  if (!disk.mounted()) GTEST_SKIP() << "only root can mount a small disk";
  disk.fill();
  for (const std::string words : {"report --db t.db --out disk/r.html", "dispatch --regime warm --db t.db --out disk",
                                  "stability --input numbers.txt --db s.db --out disk"}) {
    const Result result = run(words);
    EXPECT_EQ(result.code, 3) << words << result.err;
    EXPECT_NE(result.err.find("disk"), std::string::npos) << words << result.err;
  }
  for (const auto& entry : fs::directory_iterator(folder_ / "disk"))
    EXPECT_TRUE(entry.path().filename() == "filler" || fs::file_size(entry) == 0) << entry.path();
}

TEST_F(Hostile, ALimitOnFileSizesIsAnErrorAndNoSuddenDeath) {
  std::ofstream(folder_ / "limited.sh") << "ulimit -f 1500\nexec " ROWTUNE_PROGRAM " " << longer_tune
                                        << " --no-final --db t.db\n";  // blocks of 512 bytes
  const int status = std::system(("cd " + folder_.string() + " && sh limited.sh >out 2>err").c_str());
  ASSERT_TRUE(WIFEXITED(status)) << "ended by a signal";
  EXPECT_EQ(WEXITSTATUS(status), 3) << read_file(folder_ / "err");
  EXPECT_NE(read_file(folder_ / "err").find("File too large"), std::string::npos) << read_file(folder_ / "err");
  EXPECT_EQ(integrity("t.db"), "ok");
  EXPECT_GT(measurements("t.db"), 0);
}

TEST_F(Hostile, NumbersHavePointsInEveryLocale) {
  const std::string make = "localedef -i de_DE -f UTF-8 " + (folder_ / "de_DE.UTF-8").string() + " >/dev/null 2>&1";
  if (std::system(make.c_str()) != 0) GTEST_SKIP() << "no localedef, or no German locale, here (package locales)";
  std::ofstream(folder_ / "numbers.txt") << "1.5 2.25 1e-3\n";
  std::ofstream(folder_ / "shapes.txt") << "4x64\n";
  ASSERT_EQ(run(small_tune + " --quiet --db t.db").code, 0);
  const std::string commands[] = {"best --regime warm --max-error 1.5 --db t.db --format table",
                                  "best --regime warm --db t.db --format csv",
                                  "best --regime warm --db t.db --format json",
                                  "report --format csv --db t.db --out r.csv",
                                  "space --device cpu --op layernorm --dtype f32 --shape 64x1000 --format json",
                                  "compare t.db t.db --margin 0.5 --format csv",
                                  "stability --input numbers.txt --db s.db --format csv"};
  std::vector<Result> plain;
  for (const std::string& words : commands) plain.push_back(run(words));
  setenv("LOCPATH", folder_.c_str(), 1);
  setenv("LC_ALL", "de_DE.UTF-8", 1);
  for (std::size_t i = 0; i < std::size(commands); ++i) {
    const Result german = run(commands[i]);
    EXPECT_EQ(german.code, plain[i].code) << commands[i] << german.err;
    EXPECT_EQ(german.out, plain[i].out) << commands[i];
  }
  const Result tuned =
      run("tune --device cpu --op rmsnorm --dtype f32 --shapes shapes.txt --regime warm --budget 1.5s "
          "--quiet --db t.db");
  EXPECT_EQ(tuned.code, 0) << tuned.err;
  unsetenv("LOCPATH");
  unsetenv("LC_ALL");
  EXPECT_NE(plain[1].out.find('.'), std::string::npos);
}

}  // namespace
}  // namespace rowtune
