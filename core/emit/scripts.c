// What several targets share: the Python scripts, whose text the build takes from
// core/emit/scripts, and the lines that launch scripts begin with.
#include "core/emit/emit.h"

#include "core/emit/scripts.inc"

void emit_training_script(struct emit_files *files)
{
    emit_add(files, "train.py", (struct str){train_script, sizeof train_script});
}

void emit_yarn_script(struct emit_files *files, const struct draft *j)
{
    if (draft_is(j, IS_YARN, IS_OWN_YARN))
        emit_add(files, "yarn.py", (struct str){yarn_script, sizeof yarn_script});
}

// torch 2.9 renamed the variable and still reads the old name; Trinity looks for the old one only.
#define EXPORT_LINES                                                               \
    {IS_EXPANDABLE, 0, "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"}, \
        {IS_EXPANDABLE | IS_TORCH_NEW, 0, "export PYTORCH_ALLOC_CONF=expandable_segments:True"}

const struct line allocator_lines[] = {EXPORT_LINES};
const ptrdiff_t allocator_line_count = COUNT_OF(allocator_lines);

const struct line environment_lines[] = {
    {.text = "set -euo pipefail\ncd \"$(dirname \"$0\")\""},
    EXPORT_LINES,
    {IS_YARN, IS_OWN_YARN,
     "# The model has @max_position@ positions; YaRN stretches them by @yarn_factor@."},
    {IS_YARN, IS_OWN_YARN, "python3 yarn.py @weights@ model-yarn @yarn_factor@"},
};
const ptrdiff_t environment_line_count = COUNT_OF(environment_lines);

const struct line node_lines[] = {
    {IS_NODES, 0,
     ": \"${MASTER_ADDR:?set it to the address of the first node}\"\n"
     ": \"${NODE_RANK:?set it to 0 on the first node, 1 on the second, and so on}\"\n"
     "launch=(--machine_rank \"$NODE_RANK\" --main_process_ip \"$MASTER_ADDR\"\n"
     "        --main_process_port \"${MASTER_PORT:-29500}\")"},
    {0, IS_NODES, "launch=(${MASTER_PORT:+--main_process_port \"$MASTER_PORT\"})"},
};
const ptrdiff_t node_line_count = COUNT_OF(node_lines);
