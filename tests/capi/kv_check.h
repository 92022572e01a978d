/* For the tests of key-value stores in C: stores and items in one call. */
#pragma once

#include "check.h"

#include <string.h>

static stele_kv* open_kv(const char* path) {
  stele_options options = STELE_OPTIONS_INIT;
  options.create_size = 8 << 20;
  stele_kv* kv = NULL;
  CHECK(stele_kv_open(path, &options, &kv) == STELE_OK);
  return kv;
}

static int put(stele_kv* kv, const char* key, const char* value) {
  return stele_kv_put(kv, key, strlen(key), value, strlen(value), STELE_DURABLE);
}

/* Whether the key has this value; NULL: whether it has none. */
static int has(stele_kv* kv, const char* key, const char* value) {
  char found[64] = "";
  size_t size = 0;
  const int code = stele_kv_get(kv, key, strlen(key), found, sizeof found - 1, &size);
  if (value == NULL) return code == STELE_NOT_FOUND;
  return code == STELE_OK && size == strlen(value) && strcmp(found, value) == 0;
}
