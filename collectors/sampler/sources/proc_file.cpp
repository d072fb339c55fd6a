// SPDX-License-Identifier: Apache-2.0
#include "collectors/sampler/sources/proc_file.hpp"

#include "native/errors.hpp"

#include <fcntl.h>

namespace sampler {

ProcFile::ProcFile(std::string path) : path_(std::move(path)), fd_(open(path_.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (!fd_)
    throw native::system_failure("cannot read " + path_);
}

std::string ProcFile::read() const {
  std::string text;
  char chunk[16'384];
  ssize_t n = 0;
  while ((n = pread(fd_.get(), chunk, sizeof chunk, static_cast<off_t>(text.size()))) > 0)
    text.append(chunk, static_cast<std::size_t>(n));
  if (n < 0)
    throw native::system_failure("cannot read " + path_);
  return text;
}

} // namespace sampler
