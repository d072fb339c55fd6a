// SPDX-License-Identifier: Apache-2.0
#include "errors.h"

#include <stdarg.h>
#include <stdio.h>

int fail(const char *format, ...) {
  va_list args;
  va_start(args, format);
  fputs("transport: ", stderr);
  vfprintf(stderr, format, args);
  fputc('\n', stderr);
  va_end(args);
  return 1;
}
