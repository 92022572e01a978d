/* What the tests in C share: a check that says where it failed and what the library said last, and
 * counts. */
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
