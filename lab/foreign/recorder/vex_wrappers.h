/* The best flush that the program is told of; vex_wrappers.c. */
#ifndef STELE_LAB_FOREIGN_VEX_WRAPPERS_H
#define STELE_LAB_FOREIGN_VEX_WRAPPERS_H

#include "instruction.h"

extern instruction_kind best_flush; /* clflush, clflushopt or clwb */

#endif
