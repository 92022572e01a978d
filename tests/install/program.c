/* A user's project: a pool in C. */
#include <stdio.h>
#include <stele/stele.h>

int main(int argc, char** argv) {
  stele_pool* pool = NULL;
  stele_options options = STELE_OPTIONS_INIT;
  options.create_size = 1 << 20;
  if (argc < 2 || stele_pool_open(argv[1], &options, 8, &pool) != STELE_OK) {
    fprintf(stderr, "%s\n", stele_error_message());
    return 1;
  }
  return stele_pool_close(pool) == STELE_OK ? 0 : 1;
}
