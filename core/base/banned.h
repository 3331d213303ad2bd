// Included before everything else when the project is compiled: functions that are never the right
// choice become compile errors. The system's declarations come first, so that they still parse.
#ifndef FATHOM_BASE_BANNED_H
#define FATHOM_BASE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BANNED(function) function##_is_a_banned_function

#undef strcpy
#define strcpy(to, from) BANNED(strcpy)
#undef strcat
#define strcat(to, from) BANNED(strcat)
#undef strncpy
#define strncpy(to, from, n) BANNED(strncpy)
#undef strtok
#define strtok(s, delimiters) BANNED(strtok)
#undef sprintf
#define sprintf(...) BANNED(sprintf)
#undef vsprintf
#define vsprintf(...) BANNED(vsprintf)
#undef atoi
#define atoi(s) BANNED(atoi)
#undef gmtime
#define gmtime(t) BANNED(gmtime)
#undef localtime
#define localtime(t) BANNED(localtime)
#undef mktemp
#define mktemp(t) BANNED(mktemp)
#undef system
#define system(c) BANNED(system)
#undef popen
#define popen(c, m) BANNED(popen)

#endif
