// A library to preload: a program that makes a temporary folder is interrupted before it has it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>

// A shell's background jobs ignore SIGINT.
__attribute__((constructor)) static void hear_interrupts(void) {
  signal(SIGINT, SIG_DFL);
}

char* mkdtemp(char* name) {
  char* (*const made)(char*) = (char* (*)(char*))dlsym(RTLD_NEXT, "mkdtemp");
  kill(getpid(), SIGINT);
  return made(name);
}
