/* Word count in C: a linked list in a pool, changed by transactions of stele.h. A second run
 * continues to count.
 */
#include <stele/stele.h>

#include <stdio.h>
#include <string.h>

typedef struct entry {
  stele_ptr next;
  uint64_t times;
  char word[24];
} entry;
typedef struct table {
  stele_ptr first;
} table;

/* Counts the word that arg points to. If a call ends the attempt, the body returns, and the library
 * runs it again or rolls back. */
static int count_word(stele_tx* tx, void* root, void* arg) {
  stele_ptr* link = &((table*)root)->first;
  entry copy;
  void *at = NULL, *first = NULL;
  int code;
  for (code = stele_get_ptr(tx, link, &at); code == STELE_OK && at != NULL;
       code = stele_get_ptr(tx, &((entry*)at)->next, &at)) {
    code = stele_load(tx, &copy, at, sizeof copy);
    if (code != STELE_OK) return code;
    if (strcmp(copy.word, arg) == 0)
      return stele_store_u64(tx, &((entry*)at)->times, copy.times + 1);
  }
  if (code == STELE_OK) code = stele_alloc(tx, sizeof(entry), &at);
  if (code == STELE_OK) code = stele_store(tx, ((entry*)at)->word, arg, strlen(arg) + 1);
  if (code == STELE_OK) code = stele_store_u64(tx, &((entry*)at)->times, 1);
  if (code == STELE_OK) code = stele_get_ptr(tx, link, &first);
  if (code == STELE_OK) code = stele_set_ptr(tx, &((entry*)at)->next, first);
  return code == STELE_OK ? stele_set_ptr(tx, link, at) : code;
}

/* A body may run more than once, so this body only collects the lines; main prints them. */
static int list_words(stele_tx* tx, const void* root, void* arg) {
  char* lines = arg;
  entry copy;
  void* at = NULL;
  int code = stele_get_ptr(tx, &((const table*)root)->first, &at);
  for (*lines = '\0'; code == STELE_OK && at != NULL;
       code = stele_get_ptr(tx, &((entry*)at)->next, &at)) {
    code = stele_load(tx, &copy, at, sizeof copy);
    if (code != STELE_OK) return code;
    lines += sprintf(lines, "%s: %lu\n", copy.word, (unsigned long)copy.times);
  }
  return code;
}

int main(int argc, char** argv) {
  static char words[][24] = {"to", "be", "or", "not", "to", "be"};
  stele_options options = STELE_OPTIONS_INIT;
  options.create_size = 16 << 20;
  stele_pool* pool = NULL;
  char lines[1024];
  int code = stele_pool_open(argc > 1 ? argv[1] : "words.stele", &options, sizeof(table), &pool);
  for (size_t i = 0; code == STELE_OK && i < sizeof words / sizeof *words; ++i)
    code = stele_update(pool, count_word, words[i], STELE_DURABLE);
  if (code == STELE_OK) code = stele_read(pool, list_words, lines);
  if (code == STELE_OK) code = fputs(lines, stdout) < 0;
  if (code != STELE_OK) fprintf(stderr, "%s: %s\n", stele_code_name(code), stele_error_message());
  return stele_pool_close(pool) != STELE_OK || code != STELE_OK;
}
