// STELE_IN_ONE_PIECE before a function: all that it calls is compiled into it. Not under
// sanitizers: with their checks such a function takes minutes to compile.
#pragma once

#ifdef STELE_SANITIZED
#define STELE_IN_ONE_PIECE
#else
#define STELE_IN_ONE_PIECE [[gnu::flatten]]
#endif
