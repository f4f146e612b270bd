/* SPDX-License-Identifier: BSD-3-Clause */
/* Cutting tasks into slices, and runs of slices into posts. */
#include "config.h"

#include "engine/core.h"

/* Slices of `length` bytes: a last piece of up to fragment_limit joins the
 * slice before it. The rule rest <= slice + fragment ? rest : slice, counted:
 * with S, F it is 1 up to S + F, and ceil((length - F) / S) above. */
uint32_t shunt_slice_count(const shunt_engine_t *engine, size_t length)
{
    size_t slice    = engine->conf.slice_size;
    size_t fragment = engine->conf.fragment_limit;

    if (length <= slice + fragment)
        return 1;
    return (uint32_t)((length - fragment + slice - 1) / slice);
}

/* Bytes of the next run: as many whole slices as the rail's best post takes,
 * with the task's end if it is near enough. */
static size_t run_length(const shunt_engine_t *engine,
                         const shunt_xattr_t *attr, size_t rest)
{
    size_t slice = engine->conf.slice_size;
    size_t best =
        attr->best_post < attr->max_post ? attr->best_post : attr->max_post;
    size_t run = best < slice ? slice : best - best % slice;

    if ((rest <= run) || ((rest - run <= engine->conf.fragment_limit) &&
                          (rest <= attr->max_post)))
        return rest;
    return run;
}

/* The next run of a task, for one path; moves the task's cursor. NULL: the
 * engine has SLICES_QUOTA posts already. */
slice_t *shunt_slice_next(task_t *task, path_t *path)
{
    shunt_engine_t *engine = path->rail->engine;
    size_t rest            = task->length - task->cursor;
    slice_t *slice         = shunt_pool_get(&engine->slices);
    size_t length;

    if (slice == NULL)
        return NULL;
    length           = run_length(engine, &path->rail->attr, rest);
    slice->task      = task;
    slice->path      = path;
    slice->next      = NULL;
    slice->offset    = task->cursor;
    slice->retries   = task->retry_hint;
    slice->flushes   = 0;
    slice->status    = SHUNT_OK;
    slice->retry_at  = 0;
    slice->op.opcode = (shunt_opcode_t)task->opcode;
    slice->op.local  = task->local + task->cursor;
    slice->op.remote = task->remote + task->cursor;
    slice->op.length = length;
    /* the task's last run counts what is left, so that the sum is right */
    slice->count =
        shunt_slice_count(engine, rest) -
        (length == rest ? 0 : shunt_slice_count(engine, rest - length));
    task->cursor += length;
    return slice;
}
