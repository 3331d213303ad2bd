// Inside the room: how the rows of the table fill a job where their kind does not say it, and the
// way back.
#ifndef FATHOM_JOB_FIELDS_H
#define FATHOM_JOB_FIELDS_H

#include <stddef.h>

#include "core/base/buf.h"
#include "core/job/job.h"

bool read_recipe(struct job *j, const struct setting *item, struct error *e);
bool read_checkpointing(struct job *j, const struct setting *item, struct error *e);
bool read_loss(struct job *j, const struct setting *item, struct error *e);
bool read_lora_targets(struct job *j, const struct setting *item, struct error *e);
bool read_lora_whole(struct job *j, const struct setting *item, struct error *e);
bool read_image_size(struct job *j, const struct setting *item, struct error *e);
bool read_beta(struct job *j, const struct setting *item, struct error *e);
bool read_task(struct job *j, const struct setting *item, struct error *e);
bool read_torch(struct job *j, const struct setting *item, struct error *e);
bool read_for(struct job *j, const struct setting *item, struct error *e);
bool read_around(struct job *j, const struct setting *item, struct error *e);

void put_recipe(struct buf *b, const struct job *j);
void put_beta(struct buf *b, const struct job *j);
void put_checkpointing(struct buf *b, const struct job *j);
void put_loss(struct buf *b, const struct job *j);
void put_lora_targets(struct buf *b, const struct job *j);
void put_lora_whole(struct buf *b, const struct job *j);
void put_image_size(struct buf *b, const struct job *j);
void put_torch(struct buf *b, const struct job *j);
void put_for(struct buf *b, const struct job *j);
void put_around(struct buf *b, const struct job *j);

#endif
