// Every link of every Markdown file of the repository leads somewhere: to a file, and to a heading of it where it says
// so.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace rowtune::reports::test {
namespace {

namespace fs = std::filesystem;

const fs::path root = ROWTUNE_SOURCE_DIR;

std::vector<fs::path> markdown_files() {
  std::vector<fs::path> files;
  for (auto at = fs::recursive_directory_iterator(root); at != fs::recursive_directory_iterator(); ++at) {
    const std::string name = at->path().filename().string();
    if (at->is_directory() && (name.starts_with(".") || name == "build" || name == "out"))
      at.disable_recursion_pending();
    else if (at->path().extension() == ".md")
      files.push_back(at->path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// The text without code: links in it are examples.
std::string prose_of(const fs::path& file) {
  std::ifstream in(file);
  std::string text, line;
  bool fenced = false;
  while (std::getline(in, line)) {
    if (line.starts_with("```")) fenced = !fenced;
    if (!fenced && !line.starts_with("    ") && !line.starts_with("```")) text += line + "\n";
  }
  return std::regex_replace(text, std::regex("`[^`]*`"), "`");
}

/// Anchors of headings as GitHub makes them: lower case, punctuation dropped, spaces to dashes.
std::set<std::string> anchors_of(const fs::path& file) {
  std::set<std::string> anchors;
  std::ifstream in(file);
  std::string line;
  bool fenced = false;
  while (std::getline(in, line)) {
    if (line.starts_with("```")) fenced = !fenced;
    if (fenced || !line.starts_with("#")) continue;
    std::string anchor;
    const auto begin = line.find_first_not_of("# ");
    for (const char c : begin == std::string::npos ? "" : line.substr(begin)) {
      if (std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-')
        anchor += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      else if (c == ' ')
        anchor += '-';
    }
    anchors.insert(anchor);
  }
  return anchors;
}

TEST(Links, EveryOneLeadsSomewhere) {
  int links = 0;
  const std::regex link(R"(\]\(([^)\s]+)\))");
  for (const auto& file : markdown_files()) {
    const std::string text = prose_of(file);
    for (std::sregex_iterator at(text.begin(), text.end(), link), end; at != end; ++at) {
      const std::string target = (*at)[1];
      if (target.find("://") != std::string::npos || target.starts_with("mailto:")) continue;
      ++links;
      const auto hash = target.find('#');
      const fs::path to = hash == 0 ? file : file.parent_path() / target.substr(0, hash);
      EXPECT_TRUE(fs::exists(to)) << fs::relative(file, root) << " links to " << target;
      if (hash == std::string::npos || !fs::exists(to)) continue;
      EXPECT_TRUE(anchors_of(to).contains(target.substr(hash + 1)))
          << fs::relative(file, root) << " links to " << target;
    }
  }
  EXPECT_GE(links, 10) << "the links are there, and were found";
}

/// Paths in backquotes too: a name with a folder is relative to the file's folder, to the root, or to the kernels'
/// headers.
TEST(Links, PathsInBackquotesExist) {
  int paths = 0;
  const std::regex path(R"(`([A-Za-z0-9_.-]+(?:/[A-Za-z0-9_.-]+)+\.(?:cpp|hpp|cuh|h|js|py|cmake|md|json|bash))`)");
  for (const auto& file : markdown_files()) {
    if (file.filename() == "CHANGELOG.md") continue;  // tells of files that are gone
    std::ifstream in(file);
    std::stringstream all;
    all << in.rdbuf();
    const std::string text = all.str();
    for (std::sregex_iterator at(text.begin(), text.end(), path), end; at != end; ++at) {
      const std::string name = (*at)[1];
      if (name.find("NAME") != std::string::npos) continue;  // to be filled in
      if (name.starts_with("build/") || name.starts_with("out/") || name.starts_with("table/"))
        continue;  // made by a run
      ++paths;
      const bool there = fs::exists(file.parent_path() / name) || fs::exists(root / name) ||
                         fs::exists(root / "kernels" / name) || fs::exists(root / "kernels/include" / name);
      EXPECT_TRUE(there) << fs::relative(file, root) << " names " << name;
    }
  }
  EXPECT_GE(paths, 20);
}

}  // namespace
}  // namespace rowtune::reports::test
