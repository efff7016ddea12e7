/* The parser of a request to the agent of a live process (agent.h), one line.
 *
 *     cpythonplus 1 NAME\n
 *     cpythonplus 1 NAME ARGUMENT\n   for examinations of one type
 *
 * The registry of examinations (_doctor/questions.py) has the names, and tells which take an argument; a name is
 * looked up there and used for nothing else.  An argument is the name of a type, without spaces and control
 * characters.  The request has at most PLUS_REQUEST_MAX bytes.  UTF-8 is not checked here.  Nothing here uses Python,
 * allocates, or keeps state: any thread, no GIL. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define PLUS_REQUEST_VERSION "1"
#define PLUS_REQUEST_MAX 512 /* bytes of a request, with its end of line */
#define PLUS_REQUEST_NAME_MAX 32

enum plus_request_verdict {
    PLUS_REQUEST_WHOLE,         /* complete; it has `used` bytes */
    PLUS_REQUEST_MORE,          /* well-formed so far, without the end of the line */
    PLUS_REQUEST_TOO_LONG,      /* PLUS_REQUEST_MAX bytes without an end */
    PLUS_REQUEST_NOT_OURS,      /* does not begin as a request does */
    PLUS_REQUEST_OTHER_VERSION, /* a request of another version */
    PLUS_REQUEST_BAD_NAME,      /* no examination can have this name */
    PLUS_REQUEST_BAD_ARGUMENT,  /* cannot be the name of a type */
};

struct plus_request {
    char name[PLUS_REQUEST_NAME_MAX + 1];
    const char *argument; /* points into the parsed bytes; not NUL-terminated */
    size_t argument_length;
    size_t used;
};

/* Parses the first line of `length` bytes; fills in `request` for PLUS_REQUEST_WHOLE only. */
enum plus_request_verdict
plus_request_parse(const char *bytes, size_t length, struct plus_request *request);

/* Returns the error as a sentence for people; static. */
const char *
plus_request_reason(enum plus_request_verdict verdict);
