// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "native/fd.hpp"

#include <string>

namespace sampler {

// A file of /proc that stays open and is read repeatedly.
class ProcFile {
public:
  explicit ProcFile(std::string path);

  std::string read() const;

private:
  std::string path_;
  native::Fd fd_;
};

} // namespace sampler
