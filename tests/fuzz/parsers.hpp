// SPDX-License-Identifier: Apache-2.0
// Everything native that reads what comes from outside, each as one function of bytes. They refuse by native::Failure;
// whatever else they do to bad input is a fault.
#pragma once

#include <span>
#include <string>

namespace fuzz {

struct Parser {
  const char *name; // and of its folder in corpus/
  void (*take)(const std::string &input);
};

std::span<const Parser> parsers();

// Gives an input to a parser; a refusal is as good as taking it.
void give(const Parser &parser, const std::string &input);

} // namespace fuzz
