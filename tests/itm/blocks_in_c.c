// The C side of libstele_itm, compiled with gcc -fgnu-tm: opens a pool, pushes a node, cancels a
// push, closes the pool. See itm_test.cc.
#include <stdlib.h>
#include <stele/itm.h>

struct node {
  unsigned long key;
  struct node* next;
};
struct list {
  struct node* head;
  unsigned long size;
};

static int push(struct list* l, unsigned long key, int cancels) {
  int fits = 0;
  __transaction_atomic {
    struct node* n = stele_itm_malloc(sizeof *n);
    if (n == NULL) __transaction_cancel;
    n->key = key;
    n->next = l->head;
    l->head = n;
    l->size += 1;
    fits = 1;
    if (cancels) __transaction_cancel;
  }
  return fits;
}

// Returns the list's length after one more push; 0 when something is wrong.
unsigned long push_in_c(const char* path) {
  struct list* l = stele_itm_open(path, 1 << 20, sizeof *l);
  unsigned long length = 0;
  if (l == NULL || l != stele_itm_root()) return 0;
  if (!push(l, 1, 0) || push(l, 2, 1)) return 0;
  __transaction_atomic {
    for (struct node* n = l->head; n != NULL; n = n->next) length += n->key;
    if (length != l->size) length = 0;
  }
  return stele_itm_close() == 0 ? length : 0;
}
