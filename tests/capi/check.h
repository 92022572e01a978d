/* For all tests in C: a check that prints its place and the library's last error when it fails, and
 * counts failures. */
#pragma once

#include <stele/stele.h>

#include <stdio.h>

static int failures;
#define CHECK(condition)                                                    \
  do {                                                                      \
    if (!(condition)) {                                                     \
      ++failures;                                                           \
      printf("%s:%d: %s; last error: %s\n", __FILE__, __LINE__, #condition, \
             stele_error_message());                                        \
    }                                                                       \
  } while (0)
