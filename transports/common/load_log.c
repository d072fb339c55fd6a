// SPDX-License-Identifier: Apache-2.0
#include "load_log.h"

#include <bpf/libbpf.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN_LINES 20

// The latest output of libbpf. If the verifier refuses the program, its reasons come last.
static char libbpf_output[16384];

// Stores libbpf's output, which is printed only if loading fails.
static int store_output(enum libbpf_print_level level, const char *format, va_list args) {
  char *text = NULL;
  if (level == LIBBPF_DEBUG || vasprintf(&text, format, args) < 0)
    return 0;
  size_t room = sizeof(libbpf_output) - 1, length = strlen(text), used = strlen(libbpf_output);
  const char *kept = length > room ? text + length - room : text;
  size_t over = used + strlen(kept) > room ? used + strlen(kept) - room : 0;
  memmove(libbpf_output, libbpf_output + over, used - over + 1);
  strcat(libbpf_output, kept);
  free(text);
  return (int)length;
}

void load_log_start(void) { libbpf_set_print(store_output); }

const char *load_log_reasons(void) {
  static const char *const noise[] = {"processed ", "-- BEGIN", "-- END", "libbpf: failed to load object"};
  static char shown[sizeof(libbpf_output)];
  char *lines[SHOWN_LINES] = {0};
  int count = 0;
  for (char *rest = libbpf_output, *line; (line = strtok_r(rest, "\n", &rest));) {
    int is_shown = 1;
    for (size_t i = 0; i < sizeof(noise) / sizeof(noise[0]); i++)
      is_shown &= strncmp(line, noise[i], strlen(noise[i])) != 0;
    if (is_shown)
      lines[count++ % SHOWN_LINES] = line;
  }
  *shown = 0;
  for (int i = count > SHOWN_LINES ? count - SHOWN_LINES : 0; i < count; i++)
    strcat(strcat(strcat(shown, "  "), lines[i % SHOWN_LINES]), i + 1 < count ? "\n" : "");
  return shown;
}
