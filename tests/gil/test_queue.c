/* The queue of one class against a sorted array. */
#include "check.h"

#include "gil/scheduler/queue.h"

#include <stddef.h>

#define THREADS 24
#define STEPS 200000

static struct plus_thread threads[THREADS];

/* Both directions, both ends. */
static void
compare(const struct plus_queue *queue, struct plus_thread *const *model, uint32_t length)
{
    const struct plus_thread *at = queue->head;
    const struct plus_thread *before = NULL;

    for (uint32_t i = 0; i < length; i++) {
        CHECK(at == model[i]);
        CHECK(at->prev == before);
        before = at;
        at = at->next;
    }
    CHECK(at == NULL);
    CHECK(queue->tail == before);
}

static void
test_first_come_first_served(void)
{
    struct plus_queue queue = {0};
    struct plus_thread *model[3] = {&threads[0], &threads[1], &threads[2]};

    compare(&queue, model, 0);
    for (uint32_t i = 0; i < 3; i++) {
        threads[i].ticket = i + 1u;
        plus_queue_insert(&queue, &threads[i]);
    }
    compare(&queue, model, 3);
}

static void
test_an_old_ticket_goes_to_its_old_place(void)
{
    struct plus_queue queue = {0};
    struct plus_thread *model[4] = {&threads[0], &threads[1], &threads[2], &threads[3]};

    for (uint32_t i = 0; i < 4; i++) {
        threads[i].ticket = 10u * (i + 1u);
        plus_queue_insert(&queue, &threads[i]);
    }
    for (uint32_t i = 0; i < 4; i++) {
        plus_queue_remove(&queue, &threads[i]);
        CHECK(threads[i].next == NULL && threads[i].prev == NULL);
        plus_queue_insert(&queue, &threads[i]);
        compare(&queue, model, 4);
    }
}

static void
model_insert(struct plus_thread **model, uint32_t length, struct plus_thread *thread)
{
    uint32_t at = length;

    while (at > 0 && model[at - 1u]->ticket > thread->ticket) {
        model[at] = model[at - 1u];
        at--;
    }
    model[at] = thread;
}

static void
model_remove(struct plus_thread **model, uint32_t length, const struct plus_thread *thread)
{
    uint32_t at = 0;

    while (model[at] != thread) {
        at++;
    }
    for (; at + 1u < length; at++) {
        model[at] = model[at + 1u];
    }
}

static void
test_against_the_model(void)
{
    struct plus_queue queue = {0};
    struct plus_thread *model[THREADS];
    uint32_t length = 0;
    uint64_t random = 1, ticket = 0;

    for (uint32_t i = 0; i < THREADS; i++) {
        threads[i] = (struct plus_thread){0};
    }
    for (uint32_t step = 0; step < STEPS; step++) {
        struct plus_thread *thread = &threads[next_random(&random) % THREADS];

        if (thread->queued) {
            plus_queue_remove(&queue, thread);
            model_remove(model, length--, thread);
        }
        else {
            /* A new ticket, or back with the old one. */
            if (thread->ticket == 0 || next_random(&random) % 2 == 0) {
                thread->ticket = ++ticket;
            }
            plus_queue_insert(&queue, thread);
            model_insert(model, length++, thread);
        }
        thread->queued = !thread->queued;
        compare(&queue, model, length);
    }
}

int
main(void)
{
    test_first_come_first_served();
    test_an_old_ticket_goes_to_its_old_place();
    test_against_the_model();
    return 0;
}
