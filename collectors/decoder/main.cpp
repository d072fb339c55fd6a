// SPDX-License-Identifier: Apache-2.0
// decode: captures in, fixed binary records out.
#include "collectors/decoder/blocks.hpp"
#include "collectors/decoder/input/capture_file.hpp"
#include "native/errors.hpp"

#include <CLI/CLI.hpp>
#include <arpa/inet.h>
#include <iostream>
#include <unistd.h>

namespace {

constexpr int kBadUsage = 2;

constexpr const char *kAbout =
    "Takes the packets of pcap and pcapng files (also .gz) apart, in the order given, and writes one binary record "
    "each to\n"
    "standard output; the layout is in collectors/decoder/README.md. `roundabout decode` makes tables of them.";

constexpr const char *kExitStatus = "Exit status: 0 done (what could not be decoded is counted in the output);\n"
                                    "1 failed (said on standard error); 2 bad usage.";

std::optional<decoder::Address> parse_address(const std::string &text) {
  decoder::Address address;
  if (inet_pton(AF_INET, text.c_str(), address.bytes.data()) == 1)
    address.version = 4;
  else if (inet_pton(AF_INET6, text.c_str(), address.bytes.data()) == 1)
    address.version = 6;
  else
    return std::nullopt;
  return address;
}

std::string check_address(const std::string &text) {
  return parse_address(text) ? "" : "found " + text + ", expected an IPv4 or IPv6 address";
}

void decode(const std::vector<std::string> &files, const std::vector<std::string> &own) {
  std::vector<decoder::Address> addresses;
  for (const std::string &text : own)
    addresses.push_back(*parse_address(text));
  decoder::Blocks blocks(STDOUT_FILENO, addresses);
  std::vector<std::string> damage, skipped;
  for (const std::string &path : files) {
    decoder::CaptureFile file(path);
    for (decoder::Frame frame; file.next(frame);)
      blocks.add(frame);
    if (!file.damage().empty())
      damage.push_back(file.damage());
    for (std::string &text : file.skipped())
      skipped.push_back(std::move(text));
  }
  blocks.finish(damage, skipped);
}

} // namespace

int main(int argc, char **argv) {
  std::vector<std::string> files, own;
  CLI::App app(kAbout, "decode");
  app.footer(kExitStatus);
  app.add_option("FILE", files, "captures; - is standard input")->required();
  app.add_option("--own", own, "addresses of the host that captured: A,B,...; a packet's direction follows from them")
      ->delimiter(',')
      ->check(check_address);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : kBadUsage;
  }
  try {
    decode(files, own);
    return 0;
  } catch (const std::exception &error) {
    std::cerr << "decode: " << error.what() << '\n';
    return 1;
  }
}
