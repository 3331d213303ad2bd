// What rules ask of a job beyond its traits: one function each, true where the rule's row applies.
#ifndef FATHOM_JOB_CONDITIONS_H
#define FATHOM_JOB_CONDITIONS_H

#include "core/job/job.h"

typedef bool condition(const struct job *j);

condition has_no_context, is_trinity, is_verls, is_not_verls, is_not_policy, is_policy,
    is_deepspeed, is_trl, calls_its_head, has_older_head, is_trainers, keeps_wide_embeddings,
    is_verl, is_megatron, is_another_recipe, is_single_on_several, shards_over_nothing,
    has_other_layers, has_other_experts, folds_experts, folds_half, names_numbered_experts,
    folds_outside_leaves, is_special_family, is_special_under_trinity, is_before_grouped_experts,
    has_images, freezes_part, has_odd_images, has_no_room_for_text, trains_nothing, has_idle_tower,
    has_untrained_part, has_unfit_tower, names_no_layer, names_parts_of_a_layer, has_idle_adapters,
    is_not_plain, has_other_attention, has_odd_batches, keeps_images_elsewhere, has_siglip,
    has_own_attention, is_special_under_zero, is_latent, asks_verl_for_another,
    asks_sinks_for_another, asks_written_for_another, asks_falcon_for_another,
    strays_from_plain_opt, is_counted_only, asks_for_no_sdpa, asks_for_flash3, is_asked_eager,
    multiplies_outside_linear, is_hybrid, is_latent_and_another, has_wide_rotary, has_untied_head,
    changes_logits, sp_misses_gpus, sp_misses_heads, sp_misses_kv_heads, sp_misses_context,
    cp_misses_gpus, cp_misses_context, has_no_such_rank, tp_misses_gpus, tp_misses_heads,
    ep_misses_gpus, spreads_experts, is_packed_without_adapters, is_packed_elsewhere,
    has_targets_without_adapters, keeps_checkpoints_for_nothing, saves_hf, limits_tokens_twice,
    limits_reference_elsewhere, reads_less_than_a_sequence, limits_tokens_elsewhere,
    is_another_recipe_with_adapters, is_offloaded, has_another_step_over_shards,
    is_unpredicted_task, is_trls_own_task, has_no_teacher, learns_other_words,
    keeps_logits_of_nothing, keeps_beyond_counting, replicates_unevenly, saves, saves_elsewhere,
    saves_under_trinity, never_saves, saves_shards, evaluates_answers, has_parts_of_another,
    evaluates_elsewhere, is_ragged, is_ragged_elsewhere, is_ragged_without_sdpa,
    is_packed_without_sft, computes_no_reference, asks_before_its_end, has_kl_elsewhere,
    generates_in_shards, distills, is_older_task, is_unpredicted_policy_task, offloads_activations,
    offloads_elsewhere, offloads_another_loss, offloads_twice, has_own_buckets, tiles_mlp,
    tiles_special_mlp, tiles_elsewhere, has_liger_layers, has_spread_liger_layers,
    has_special_liger_layers, has_other_liger_layers, is_chunked_by_hand, loss_is_given,
    passes_learned_positions, is_packed_otherwise, is_nf4_unsaid, has_no_muon, is_older_than_muon,
    attends_plainly, cuts_head_apart, has_own_adapters, has_other_step_in_fp32, has_long_parts,
    passes_file_buffer, has_narrow_embedding, has_no_bf16, packs_without_bf16,
    has_flash_without_half, has_megatrons_strategy_elsewhere, has_stages_elsewhere,
    misses_megatrons_gpus, has_ragged_stages, has_no_such_stage, cuts_groups, cuts_tokens,
    has_other_layers_than_megatron, leaves_sizes_open, interleaves, interleaves_too_few,
    has_precision_aware_elsewhere, evaluates_at_all, deals_experts_unevenly, has_odd_last_stage,
    cuts_experts_otherwise, talks_otherwise, deals_latent_heads, deals_heads_unevenly;

condition names_experts_elsewhere;

#endif
