// arc4random, which LLVM's libraries take from glibc 2.36: with one of their own, the programs of the bundle run on 2.35.
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

uint32_t arc4random(void) {
  uint32_t value;
  if (getrandom(&value, sizeof(value), 0) != (ssize_t)sizeof(value)) abort();
  return value;
}
