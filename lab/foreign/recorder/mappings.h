/* Where the program has the pool file mapped, shared. */
#ifndef STELE_LAB_FOREIGN_MAPPINGS_H
#define STELE_LAB_FOREIGN_MAPPINGS_H

#include "pub_tool_basics.h"

/* All mappings lie in [mapped_begin, mapped_begin + mapped_size). */
extern ULong mapped_begin, mapped_size;

void add_mapping(Addr begin, SizeT size, ULong offset);
void remove_mapping(Addr begin, SizeT size);

/* The first part of [begin, begin + size) that is mapped: where it is, of what size, and its offset
   in the file. False where nothing is. */
typedef struct {
  Addr begin;
  SizeT size;
  ULong offset;
} mapped_part;
Bool find_mapped(Addr begin, SizeT size, mapped_part* part);

#endif
