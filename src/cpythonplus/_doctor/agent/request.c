#include "request.h"

#include <string.h>

static const char HEAD[] = "cpythonplus ";
#define HEAD_LENGTH (sizeof HEAD - 1)

/* True for bytes without spaces and control characters.  Only decoding tells whether they are UTF-8. */
static bool
is_argument(const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)bytes[i] <= ' ' || bytes[i] == 0x7F) {
            return false;
        }
    }
    return length > 0;
}

/* Returns the length of a name, 0 if there is none: lower-case letters and, except for the first character,
 * underscores. */
static size_t
name_length(const char *rest, size_t length)
{
    size_t n = 0;

    while (n < length && ((rest[n] >= 'a' && rest[n] <= 'z') || (n > 0 && rest[n] == '_'))) {
        n++;
    }
    bool ends = n == length || rest[n] == ' ';
    return ends && n <= PLUS_REQUEST_NAME_MAX ? n : 0;
}

/* Parses the name and the argument behind the version. */
static enum plus_request_verdict
parse_rest(const char *rest, size_t length, struct plus_request *request)
{
    size_t name = name_length(rest, length);

    if (name == 0) {
        return PLUS_REQUEST_BAD_NAME;
    }
    memcpy(request->name, rest, name);
    request->name[name] = '\0';
    request->argument = rest + (name == length ? name : name + 1);
    request->argument_length = (size_t)(rest + length - request->argument);
    if (name < length && !is_argument(request->argument, request->argument_length)) {
        return PLUS_REQUEST_BAD_ARGUMENT;
    }
    return PLUS_REQUEST_WHOLE;
}

enum plus_request_verdict
plus_request_parse(const char *bytes, size_t length, struct plus_request *request)
{
    static const char version[] = PLUS_REQUEST_VERSION " ";
    size_t version_length = sizeof version - 1;
    size_t seen = length < PLUS_REQUEST_MAX ? length : PLUS_REQUEST_MAX;
    size_t head = seen < HEAD_LENGTH ? seen : HEAD_LENGTH;

    if (seen == 0) {
        return PLUS_REQUEST_MORE;
    }
    if (memcmp(bytes, HEAD, head) != 0) {
        return PLUS_REQUEST_NOT_OURS;
    }
    const char *end = memchr(bytes, '\n', seen);
    if (end == NULL) {
        return seen == PLUS_REQUEST_MAX ? PLUS_REQUEST_TOO_LONG : PLUS_REQUEST_MORE;
    }
    size_t line = (size_t)(end - bytes);
    if (line < HEAD_LENGTH + version_length ||
        memcmp(bytes + HEAD_LENGTH, version, version_length) != 0) {
        return PLUS_REQUEST_OTHER_VERSION;
    }
    size_t before = HEAD_LENGTH + version_length;
    request->used = line + 1;
    return parse_rest(bytes + before, line - before, request);
}

const char *
plus_request_reason(enum plus_request_verdict verdict)
{
    switch (verdict) {
    case PLUS_REQUEST_WHOLE:
        return "nothing is wrong";
    case PLUS_REQUEST_MORE:
        return "the request is incomplete";
    case PLUS_REQUEST_TOO_LONG:
        return "the request is too long";
    case PLUS_REQUEST_NOT_OURS:
        return "this is not a request";
    case PLUS_REQUEST_OTHER_VERSION:
        return "the process supports only version " PLUS_REQUEST_VERSION " of the protocol";
    case PLUS_REQUEST_BAD_NAME:
        return "a request's name consists of lower-case letters and underscores";
    case PLUS_REQUEST_BAD_ARGUMENT:
        return "the argument of a request must be the name of a type";
    }
    return "unknown";
}
