// What every kernel is compiled after: one header, so that it can be compiled beforehand.

#include <language.h>

#include <hopper.h>
