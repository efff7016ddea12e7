/* What a client may ask the agent of a live process (agent.h): the parser of one line.
 *
 *     cpythonplus 1 NAME\n
 *     cpythonplus 1 NAME ARGUMENT\n   for those that look at one type
 *
 * Which names there are, and which take an argument, the registry of examinations knows
 * (_doctor/questions.py): a name is looked up in it, and nothing else is done with it.
 * An argument is the name of a type, without spaces and control characters, at most PLUS_REQUEST_MAX bytes with all
 * the rest; that it is UTF-8 is not looked at here.  Nothing here knows of Python, allocates, or keeps state: any thread, no GIL.
 */
#ifndef PLUS_MEMORY_REQUEST_H
#define PLUS_MEMORY_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#define PLUS_REQUEST_VERSION "1"
#define PLUS_REQUEST_MAX 512 /* bytes of a request, its end of line included */
#define PLUS_REQUEST_NAME_MAX 32

enum plus_request_verdict {
    PLUS_REQUEST_WHOLE,         /* read; `used` bytes are it */
    PLUS_REQUEST_MORE,          /* so far so good, but the end of the line is not there */
    PLUS_REQUEST_TOO_LONG,      /* PLUS_REQUEST_MAX bytes without an end */
    PLUS_REQUEST_NOT_OURS,      /* does not begin as a request does */
    PLUS_REQUEST_OTHER_VERSION, /* begins so, but with another version */
    PLUS_REQUEST_BAD_NAME,      /* no examination can have this name */
    PLUS_REQUEST_BAD_ARGUMENT,  /* it is no name of a type */
};

struct plus_request {
    char name[PLUS_REQUEST_NAME_MAX + 1];
    const char *argument; /* points into the bytes that were parsed; not NUL-terminated */
    size_t argument_length;
    size_t used;
};

/* Reads the first line of `length` bytes; `request` is filled in for PLUS_REQUEST_WHOLE only. */
enum plus_request_verdict
plus_request_parse(const char *bytes, size_t length, struct plus_request *request);

/* What is wrong, for people; static. */
const char *
plus_request_reason(enum plus_request_verdict verdict);

#endif
