/* A short array; a program has a pool mapped once or a few times. */
#include "mappings.h"

#include "pub_tool_libcassert.h"

enum { most_mappings = 256 };
static mapped_part mappings[most_mappings];
static UInt count = 0;

ULong mapped_begin = 0, mapped_size = 0;

static void find_bounds(void) {
  ULong begin = ~0ull, end = 0;
  for (UInt i = 0; i < count; ++i) {
    if (mappings[i].begin < begin) begin = mappings[i].begin;
    if (mappings[i].begin + mappings[i].size > end) end = mappings[i].begin + mappings[i].size;
  }
  mapped_begin = count == 0 ? 0 : begin;
  mapped_size = count == 0 ? 0 : end - begin;
}

void add_mapping(Addr begin, SizeT size, ULong offset) {
  tl_assert(count < most_mappings);
  mappings[count].begin = begin;
  mappings[count].size = size;
  mappings[count++].offset = offset;
  find_bounds();
}

void remove_mapping(Addr begin, SizeT size) {
  const Addr end = begin + size;
  for (UInt i = count; i-- > 0;) {
    const mapped_part m = mappings[i];
    const Addr m_end = m.begin + m.size;
    if (m_end <= begin || m.begin >= end) continue;
    mappings[i] = mappings[--count];
    if (m.begin < begin) add_mapping(m.begin, begin - m.begin, m.offset);
    if (m_end > end) add_mapping(end, m_end - end, m.offset + (end - m.begin));
  }
  find_bounds();
}

Bool find_mapped(Addr begin, SizeT size, mapped_part* part) {
  const Addr end = begin + size;
  Bool found = False;
  for (UInt i = 0; i < count; ++i) {
    const mapped_part* const m = &mappings[i];
    const Addr from = m->begin > begin ? m->begin : begin,
               to = m->begin + m->size < end ? m->begin + m->size : end;
    if (from >= to || (found && from >= part->begin)) continue;
    found = True;
    part->begin = from;
    part->size = to - from;
    part->offset = m->offset + (from - m->begin);
  }
  return found;
}
