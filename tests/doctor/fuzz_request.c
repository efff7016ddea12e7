/* Feeds the parser of the agent's requests whatever libFuzzer thinks of (make fuzz).
 *
 * What it says of a request must be inside of it, and must not depend on what follows its end or on how much of it has
 * arrived by then.
 */
#include "_doctor/agent/request.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void
check(bool holds)
{
    if (!holds) {
        abort();
    }
}

/* A copy that ends where its memory ends, so that the sanitizer sees each byte that is read beyond. */
static enum plus_request_verdict
parse_copy(const uint8_t *data, size_t size, struct plus_request *request, char **copy)
{
    *copy = malloc(size);
    if (size > 0) {
        memcpy(*copy, data, size);
    }
    return plus_request_parse(*copy, size, request);
}

static void
check_whole(const char *bytes, size_t size, const struct plus_request *request)
{
    check(request->used > 0 && request->used <= size && request->used <= PLUS_REQUEST_MAX);
    check(bytes[request->used - 1] == '\n');
    check(request->argument >= bytes);
    check(request->argument + request->argument_length == bytes + request->used - 1);
    check(strlen(request->name) > 0);
    for (size_t i = 0; i < request->argument_length; i++) {
        check((unsigned char)request->argument[i] > ' ');
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct plus_request request, again;
    char *copy, *part;
    enum plus_request_verdict verdict = parse_copy(data, size, &request, &copy);

    check(plus_request_reason(verdict) != NULL);
    if (verdict == PLUS_REQUEST_WHOLE) {
        check_whole(copy, size, &request);
        check(parse_copy(data, request.used, &again, &part) == PLUS_REQUEST_WHOLE);
        check(strcmp(again.name, request.name) == 0 && again.used == request.used);
        free(part);
        check(parse_copy(data, request.used - 1, &again, &part) == PLUS_REQUEST_MORE);
        free(part);
    }
    else if (verdict == PLUS_REQUEST_MORE) {
        check(size < PLUS_REQUEST_MAX && (size == 0 || memchr(data, '\n', size) == NULL));
    }
    free(copy);
    return 0;
}
