/* Finds opcode and ModRM byte behind the prefixes; see instruction.h. */
#include "instruction.h"

typedef struct {
  const UChar* opcode; /* behind 0F, or behind a VEX prefix of the same map */
  Bool has_66, is_vex;
} opcode_place;

static Bool is_prefix(UChar byte) {
  return byte == 0x66 || byte == 0xF2 || byte == 0xF3 || byte == 0x2E || byte == 0x36 ||
         byte == 0x3E || byte == 0x26 || byte == 0x64 || byte == 0x65 || byte == 0x67 ||
         byte == 0xF0;
}

/* The opcode is NULL where the instruction is not of the map 0F. */
static opcode_place find_opcode(const UChar* at) {
  opcode_place found = {NULL, False, False};
  for (; is_prefix(*at); ++at) found.has_66 = found.has_66 || *at == 0x66;
  if ((*at & 0xF0) == 0x40) ++at; /* REX */
  if (*at == 0x0F) {
    found.opcode = at + 1;
  } else if (*at == 0xC5) {
    found.is_vex = True;
    found.opcode = at + 2;
  } else if (*at == 0xC4 && (at[1] & 0x1F) == 1) {
    found.is_vex = True;
    found.opcode = at + 3;
  }
  return found;
}

instruction_kind kind_of_instruction(const UChar* bytes) {
  const opcode_place found = find_opcode(bytes);
  if (found.opcode == NULL) return plain;
  switch (*found.opcode) {
    case 0x2B: /* movntps, movntpd */
    case 0xC3: /* movnti */
    case 0xE7: /* movntq, movntdq */
    case 0xF7: /* maskmovq, maskmovdqu */
      return non_temporal;
    case 0xAE: {
      if (found.is_vex) return plain;
      const UInt operation = found.opcode[1] >> 3 & 7;
      if (found.opcode[1] >= 0xC0) return operation == 5 ? load_fence : plain;
      if (operation == 7) return found.has_66 ? clflushopt : clflush;
      return operation == 6 && found.has_66 ? clwb : plain;
    }
    default:
      return plain;
  }
}

UInt mod_rm_of_flush(const UChar* bytes) {
  return (UInt)(find_opcode(bytes).opcode + 1 - bytes);
}

UInt length_of_flush(const UChar* bytes) {
  const UInt at = mod_rm_of_flush(bytes), mod = bytes[at] >> 6, rm = bytes[at] & 7;
  const Bool has_sib = rm == 4;
  UInt length = at + 1 + (has_sib ? 1 : 0);
  if (mod == 1) length += 1;
  const Bool no_base = rm == 5 || (has_sib && (bytes[at + 1] & 7) == 5);
  if (mod == 2 || (mod == 0 && no_base)) length += 4;
  return length;
}
