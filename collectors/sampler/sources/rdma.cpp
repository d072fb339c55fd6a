// SPDX-License-Identifier: Apache-2.0
#include "collectors/sampler/sources/rdma.hpp"

#include "collectors/sampler/counter_types.hpp"
#include "collectors/sampler/options.hpp"
#include "native/errors.hpp"
#include "native/fd.hpp"

#include <algorithm>
#include <charconv>
#include <fcntl.h>
#include <filesystem>

namespace sampler {
namespace {

namespace fs = std::filesystem;

// A folder of files with one number each.
class CounterFiles : public Group {
public:
  using Means = Meaning (*)(std::string_view name);
  using Factor = std::uint64_t (*)(std::string_view name);

  CounterFiles(std::string device_name, std::string source_name, const fs::path &folder, Means means, Factor factor)
      : Group(std::move(device_name), std::move(source_name)) {
    std::vector<fs::path> paths;
    for (const auto &entry : fs::directory_iterator(folder))
      paths.push_back(entry.path());
    std::sort(paths.begin(), paths.end());
    for (const fs::path &path : paths)
      open(path, means, factor);
    values.resize(counters.size());
  }

  void read() override {
    for (std::size_t i = 0; i < files_.size(); i++)
      values[i] = read(files_[i]);
  }

private:
  struct File {
    native::Fd fd;
    std::uint64_t factor;
  };

  void open(const fs::path &path, Means means, Factor factor) {
    const std::string name = path.filename();
    native::Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    File file{std::move(fd), factor(name)};
    // A device has files for counters that it does not keep: reading those fails from the first time on.
    if (!file.fd || !read(file))
      return;
    files_.push_back(std::move(file));
    counters.push_back({name, means(name)});
  }

  static std::optional<std::uint64_t> read(const File &file) {
    char text[32];
    const ssize_t n = pread(file.fd.get(), text, sizeof text, 0);
    std::uint64_t value = 0;
    if (n <= 0 || std::from_chars(text, text + n, value).ec != std::errc())
      return std::nullopt;
    return value * file.factor;
  }

  std::vector<File> files_;
};

std::uint64_t unchanged(std::string_view) { return 1; }

std::vector<std::string> sorted_names(const fs::path &folder) {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto &entry : fs::directory_iterator(folder, none))
    names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

void check(const std::vector<std::string> &wanted, const std::vector<std::string> &found) {
  for (const std::string &name : wanted)
    if (std::find(found.begin(), found.end(), name) == found.end()) {
      std::string there;
      for (const std::string &each : found)
        there += (there.empty() ? "" : ", ") + each;
      throw native::Failure("--rdma-devices: there is no \"" + name +
                            "\" here; there is: " + (there.empty() ? "none" : there));
    }
}

} // namespace

std::vector<std::unique_ptr<Group>> find_rdma(const std::string &sys, const std::vector<std::string> &names) {
  const fs::path devices = fs::path(sys) / "class/infiniband";
  const std::vector<std::string> found = sorted_names(devices);
  const std::vector<std::string> &wanted = names == kAll ? found : names;
  check(wanted, found);
  std::vector<std::unique_ptr<Group>> groups;
  for (const std::string &device : wanted)
    for (const std::string &port : sorted_names(devices / device / "ports")) {
      const fs::path folder = devices / device / "ports" / port;
      const std::string name = device + "/" + port;
      if (fs::is_directory(folder / "hw_counters"))
        groups.push_back(
            std::make_unique<CounterFiles>(name, "rdma hw", folder / "hw_counters", rdma_hw_meaning, unchanged));
      if (fs::is_directory(folder / "counters"))
        groups.push_back(std::make_unique<CounterFiles>(name, "rdma port", folder / "counters", rdma_port_meaning,
                                                        rdma_port_factor));
    }
  std::erase_if(groups, [](const auto &group) { return group->counters.empty(); });
  return groups;
}

} // namespace sampler
