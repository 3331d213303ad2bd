// Scripts that start slime and verl: what their shell says, what is read of it, what is refused.
#include "core/foreign/foreign.h"
#include "core/foreign/shell.h"
#include "tests/support/t.h"

#include <string.h>

// The words of all commands of a script, "|" between words and ";" behind each command.
static struct str commands_of(const char *text, struct error *e)
{
    struct arena *a = test_arena();
    char *block = NEW(a, char, 1 << 20);
    struct shell s = shell_in(a, arena_over(block, 1 << 20, NULL), str_from(text), STR("f.sh"), e);
    struct shell_words words;
    struct buf out = buf_in(a);
    while (shell_next(&s, &words)) {
        for (ptrdiff_t i = 0; i < words.count; i++) {
            buf_put_z(&out, i ? "|" : "");
            buf_put(&out, words.items[i].text);
        }
        buf_char(&out, ';');
    }
    return buf_str(&out);
}

static void check_commands(const char *const rows[][2], ptrdiff_t count)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        struct error e = {0};
        CHECK_STR(commands_of(rows[i][0], &e), rows[i][1]);
        CHECK_STR(str_from(e.message), "");
    }
}

TEST(words)
{
    static const char *const rows[][2] = {
        {"a  b\tc", "a|b|c;"},
        {"a 'b c'\"d e\"f\\ g", "a|b cd ef g;"},
        {"a \"\" b", "a||b;"},
        {"a \\\n  b \\\r\n c # d\ne", "a|b|c;e;"},
        {"a#b #c", "a#b;"},
        {"a; b && c | d & e", "a;b;c;d;e;"},
        {"a >b 2>&1 <c &>d e", "a|e;"},
        {"a <<END b\nx y\nEND\nc", "a|b;c;"},
        {"a <<-'END'\n$(\n\tEND\nb", "a;b;"},
        {"a <<<b c", "a|c;"},
        {"(a; b)\n{ c; }", "a;b;c;"},
        {"a \"b\\\"c\\d\" 'e\"f'", "a|b\"c\\d|e\"f;"},
        {"a $(b \"c)\" 'd)') `e f`", "a|$(b \"c)\" 'd)')|$(e f);"},
        {"a $(b <<X\n' )\nX\n) c", "a|$(b <<X\n' )\nX\n)|c;"},
        {"a $ b $5 $\"c\"", "a|$|b|$5|$c;"},
        {"a ${ b", "a|${|b;"},
        {"a 'b", "a|b;"},
    };
    check_commands(rows, COUNT_OF(rows));
}

TEST(variables)
{
    static const char *const rows[][2] = {
        {"A=1 B=$A\nc $A ${B} $C ${C}", "c|1|$A|$C|${C};"},
        {"A=1; B=$A; c $A$B", "c|11;"},
        {"A='x y'; c $A \"$A\" p$A", "c|x|y|x y|px|y;"},
        {"A=; c $A \"$A\" ${A:-d} ${A-e}", "c||d;"},
        {"c ${A:-1 2} \"${A:-1 2}\" ${B:=x} ${B:+y}", "c|1 2|1 2|x;"},
        {"A=${A:-${B:-7}}; c $A ${A:+set}", "c|7|set;"},
        {"A=1; A+=2; c $A", "c|12;"},
        {"export A=1 B='x y'; c $A $B", "export|A=1|B=x y;c|1|x|y;"},
        {"A=1 b $A", "A=1|b|$A;"},
        {"c $@ \"$*\" ${@} d", "c|d;"},
        {"A=$(b); c $A \"$A\"", "c|$(b)|$(b);"},
        {"D=$(cd -- \"$(dirname -- \"${BASH_SOURCE[0]}\")\" &>/dev/null && pwd); c $D/m.sh",
         "c|./m.sh;"},
        {"D=$(dirname \"$0\"); E=$(cd \"$D/../..\" && pwd); c $E $(dirname a/b/c)",
         "c|./../..|a/b;"},
        {"c ${A//x/y} ${#A} ${!A}", "c|${A//x/y}|${#A}|${!A};"},
    };
    check_commands(rows, COUNT_OF(rows));
}

TEST(arrays)
{
    static const char *const rows[][2] = {
        {"A=(--x 1 # one\n  # two\n  --y 'a b'\n)\nc \"${A[@]}\" d", "c|--x|1|--y|a b|d;"},
        {"A=(1 2); c ${A[@]} x${A[@]}y ${A[0]} $A", "c|1|2|x1|2y|${A[0]}|1;"},
        {"A=(1); A+=(2 $B); c ${A[*]}", "c|1|2|$B;"},
        {"A=(); c ${A[@]} ${B[@]} d", "c|d;"},
        {"A=(1 2; c ${A[@]}", ""},
        {"declare -a A=(1 2); c \"${A[@]}\"", "declare|-a;c|1|2;"},
        {"A=(\"${B[@]}\" 1); c \"${A[@]}\"", "c|1;"},
    };
    check_commands(rows, COUNT_OF(rows));
}

TEST(sums)
{
    static const char *const rows[][2] = {
        {"A=4; c $((A * 2 + 1)) $(( (A-1)*(2+1) )) $((7 / 2)) $((7 % 4))", "c|9|9|3|3;"},
        {"A=4; c $(($A * ${A} * ${B:-3}))", "c|48;"},
        {"c $((-3 + 1)) $((B)) $((1 / 0)) $((1 +)) $((0x10))",
         "c|-2|$((B))|$((1 / 0))|$((1 +))|$((0x10));"},
        {"c $((99999999 * 99999999 * 99999999)) $((9999999999999999999))",
         "c|$((99999999 * 99999999 * 99999999))|$((9999999999999999999));"},
    };
    check_commands(rows, COUNT_OF(rows));
}

// Conditions of plain values are followed; under others what was set before stands.
TEST(conditions)
{
    static const char *const rows[][2] = {
        {"A=x\nif [ \"$A\" = x ]; then B=1; else B=2; fi\nc $B", "c|1;"},
        {"A=x\nif [[ $A == y ]]\nthen\n  c\nelif [[ $A != y ]]; then d\nelse e\nfi", "d;"},
        {"A=3; if [ $A -gt 2 ] && [ $A -lt 9 ]; then c; fi; [ $A -eq 3 ] || d", "c;"},
        {"if [ -z \"$A\" ]; then A=5; fi; c $A; if [ -n \"$A\" ]; then d; fi", "c|5;d;"},
        {"A=1; if [ -f x ]; then A=2; fi; c $A", "c|1;"},
        {"if which x >/dev/null; then A=$(y); else A=0; fi; c ${A:-8}", "which|x;c|${A};"},
        {"A=1; for i in 1 2; do A=$i; c $i; done; d $A", "c|${i};d|${A};"},
        {"while read l; do c; done; case $X in a) d;; esac; e", "read|l;c;d;e;"},
        {"a || b && c", "a;b;c;"},
        {"if [ x = x ]; then if [ y = z ]; then c; else d; fi; else e; fi", "d;"},
        {"if (( A > 1 )); then c; fi", "c;"},
        {"fi done } esac c", "c;"},
    };
    check_commands(rows, COUNT_OF(rows));
    struct error e = {0};
    (void)commands_of(
        "if if if if if if if if if if if if if if if if if if if if if if if if if if "
        "if if if if if if if a",
        &e);
    CHECK_STR(str_from(e.message), "line 1: conditions nested more than 32 deep are not read");
}

// A script, "\n---\n" and another file of it; what is read: settings, "!" and the error, and behind
// "?" the notes that must be there.
struct reading {
    const char *script, *says;
};

static bool read_scripts(struct settings *read, struct foreign *f, const char *text,
                         struct error *e)
{
    struct settings given = settings_in(read->arena);
    const char *between = strstr(text, "---\n");
    struct str first = between ? (struct str){text, between - text} : str_from(text);
    struct settings file = settings_in(read->arena), other = settings_in(read->arena);
    if (!settings_read(&given, STR("gpu=8xH100-80G"), ' ', STR("--gpu"), e) ||
        !script_flatten(&file, first, STR("run.sh"), e) || !foreign_read(read, f, &file, e))
        return false;
    if (between && (!script_flatten(&other, str_from(between + 4), STR("m.sh"), e) ||
                    !foreign_read(read, f, &other, e)))
        return false;
    return foreign_conclude(read, f, &given, e) && settings_check(read, e);
}

static bool has_note(const struct foreign *f, struct str wanted)
{
    for (int i = 0; i < f->note_count; i++)
        if (str_ends(f->notes[i], wanted))
            return true;
    return false;
}

static void check_reading(const struct reading *r)
{
    struct arena *a = test_arena();
    struct settings read = settings_in(a), wanted = settings_in(a);
    struct foreign f = foreign_in(a);
    struct error e = {0}, none = {0};
    bool ok = read_scripts(&read, &f, r->script, &e);
    CHECK(ok == (r->says[0] != '!'));
    CHECK_STR(str_from(e.message), r->says[0] == '!' ? r->says + 1 : "");
    if (r->says[0] == '!')
        return;
    struct str_cut parts = str_cut(str_from(r->says), '?');
    CHECK(settings_read(&wanted, parts.head, ' ', STR_NONE, &none));
    for (ptrdiff_t i = 0; i < wanted.count; i++) {
        const struct setting *item = settings_find(&read, wanted.items[i].key);
        CHECK_STR(item ? item->value : STR("-"), str_z(a, wanted.items[i].value));
    }
    for (struct str_cut c = str_cut(parts.tail, '?'); c.head.n; c = str_cut(c.tail, '?'))
        CHECK(has_note(&f, c.head));
}

#define MODEL "MODEL_ARGS=(--swiglu --num-layers 36 --hidden-size 4096)\n"
#define EXPERTS \
    "MODEL_ARGS=(--num-layers 48 --num-experts 128 --moe-grouped-gemm --moe-permute-fusion)\n"
#define BATCHES                                                                         \
    "--rollout-batch-size 16 --n-samples-per-prompt 8 --rollout-max-response-len 8192 " \
    "--global-batch-size 128 --use-dynamic-batch-size --max-tokens-per-gpu 9216 "
#define REST "--attention-dropout 0.0 --hidden-dropout 0.0 --attention-backend flash "
#define ACTOR                                                                            \
    "python3 train.py --actor-num-nodes 1 --actor-num-gpus-per-node 8 ${MODEL_ARGS[@]} " \
    "--hf-checkpoint /models/Qwen3-8B/ "
#define SLIME ACTOR BATCHES REST
#define FULL  "predicted with micro-batches that are full, 9216 tokens; nothing else limits a sample"

TEST(slime)
{
    static const struct reading rows[] = {
        {MODEL SLIME, "model=/models/Qwen3-8B context=9216 batch=1 accum=16 tp=1 cp=1 task=grpo "
                      "checkpointing=off attention=flash2?" FULL},
        {MODEL SLIME "--tensor-model-parallel-size 2 --sequence-parallel "
                     "--pipeline-model-parallel-size 2 --recompute-granularity full "
                     "--recompute-method uniform --recompute-num-layers 1 --colocate "
                     "--optimizer-cpu-offload --use-precision-aware-optimizer",
         "tp=2 pp=2 checkpointing=on offload=optimizer precision-aware=on accum=64?what sglang "
         "leaves on the card while it sleeps is not in the answer"},
        {MODEL SLIME "--rollout-max-prompt-len 1024", "context=9216 batch=1 accum=16"},
        {MODEL SLIME "--rollout-max-context-len 4608", "context=4608 batch=2 accum=8"},
        {MODEL SLIME "--context-parallel-size 2 --rollout-max-context-len 16384",
         "cp=2 context=18432 batch=1 accum=32?predicted with micro-batches that are full, 18432 "
         "tokens"},
        {MODEL SLIME "--rollout-max-response-len 20000",
         "!nothing limits samples, and one may be longer than --max-tokens-per-gpu: --context says "
         "how long the longest is"},
        {MODEL SLIME "--recompute-granularity full --recompute-method block "
                     "--recompute-num-layers 4",
         "checkpointing=4"},
        {MODEL SLIME "--recompute-granularity selective", "checkpointing=selective"},
        {MODEL SLIME "--recompute-granularity full --recompute-method uniform "
                     "--recompute-num-layers 2",
         "!recomputation is modelled one layer at a time: --recompute-method uniform "
         "--recompute-num-layers 1"},
        {MODEL SLIME "--loss-type sft_loss",
         "task=grpo?slime's supervised loss takes what its policy gradient takes, and is predicted "
         "as that"},
        {MODEL SLIME "--use-opd --opd-type sglang", "task=opd"},
        {MODEL SLIME "--hf-checkpoint ${BASE}/Qwen3-8B-FP8", "model=Qwen3-8B"},
        {MODEL SLIME "--actor-num-gpus-per-node $GPUS", "accum=16"},
        {MODEL "ray job submit --runtime-env-json=\"{\\\"env_vars\\\": {\\\"A\\\": \\\"1\\\", "
               "\\\"PYTORCH_CUDA_ALLOC_CONF\\\": \\\"expandable_segments:True\\\"}}\" -- " SLIME,
         "expandable=on model=/models/Qwen3-8B"},
        {"export OPEN_TRAINING_INT4_FAKE_QAT_FLAG=1\n" MODEL SLIME,
         "!training in INT4 (OPEN_TRAINING_INT4_FAKE_QAT_FLAG) is not modelled"},
        {"source $(dirname $0)/models/m.sh\n" SLIME,
         "!what matters is in './models/m.sh': give it to --from too"},
        {"source $(dirname $0)/models/m.sh\n" SLIME "\n---\n" MODEL, "context=9216"},
        {MODEL SLIME "--surprise 1",
         "!slime.surprise '1' of slime is not read, and may change memory"},
        {MODEL ACTOR BATCHES,
         "!Megatron's dropout is 0.1 unless --attention-dropout 0.0 and --hidden-dropout 0.0 are "
         "there, which is not modelled"},
        {MODEL SLIME "--tensor-model-parallel-size 2",
         "!tensor parallel is modelled with --sequence-parallel"},
        {MODEL SLIME "--num-experts 8",
         "!experts are modelled with --moe-grouped-gemm and --moe-permute-fusion"},
        {EXPERTS SLIME "--expert-model-parallel-size 8", "ep=8"},
        {EXPERTS SLIME "--moe-enable-deepep",
         "!DeepEP's buffers are not modelled; of the dispatchers alltoall is"},
        {MODEL SLIME "--entropy-coef 0.001",
         "!an entropy that is trained on keeps its own gradient, which is not modelled; "
         "--entropy-coef 0 is"},
        {MODEL SLIME "--advantage-estimator ppo", "!a critic beside the policy is not modelled"},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++)
        check_reading(&rows[i]);
}

#define VERL                                                                       \
    "python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=Qwen/Qwen3-8B " \
    "algorithm.adv_estimator=grpo actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4 "

TEST(verl_scripts)
{
    static const struct reading rows[] = {
        // trainer/config: 256 prompts an update, one answer each, 512 + 512 tokens.
        {VERL, "context=1024 batch=4 accum=8 strategy=fsdp1 task=grpo"},
        {"P=$((1024 * 2))\nA=\"\n  data.max_prompt_length=$P \\\n  data.max_response_length=$P\"\n"
         "B=(actor_rollout_ref.rollout.n=2)\n" VERL "$A \"${B[@]}\" $@",
         "context=4096 batch=4 accum=16 samples=2"},
        {"backend=fsdp2\nif [[ $backend == megatron ]]; then C=ppo_megatron_trainer; else "
         "C=ppo_trainer; fi\n" VERL "--config-name=$C actor_rollout_ref.actor.strategy=$backend",
         "strategy=fsdp2"},
        {VERL "--config-name ppo_megatron_trainer.yaml",
         "!verl's Megatron workers are not modelled; its FSDP is, and slime's Megatron: --recipe "
         "megatron"},
        {VERL "--config-name=mine",
         "!what the command does not say is in Hydra's file 'mine': give it to --from before this "
         "one"},
        {VERL "trainer.n_gpus_per_node=$N", "accum=8"},
        {VERL "trainer.nnodes=2", "accum=8?--gpu 8xH100-80G in place of the file's 16 GPUs"},
        {VERL "actor_rollout_ref.actor.fsdp_config.param_offload=True",
         "offload=-?an update has parameters and optimizer on the card: predicted without offload"},
        {VERL "actor_rollout_ref.actor.fsdp_config.offload_policy=True", "offload=all"},
        {VERL "actor_rollout_ref.actor.fsdp_config.fsdp_size=8", "strategy=fsdp1"},
        {VERL "actor_rollout_ref.actor.fsdp_config.fsdp_size=4",
         "!shards that are replicated are not modelled"},
        {VERL "algorithm.adv_estimator=rloo "
              "actor_rollout_ref.actor.policy_loss.loss_mode=gspo",
         "task=grpo"},
        {VERL "algorithm.adv_estimator=gae",
         "!a critic beside the policy (adv_estimator gae) is not modelled"},
        {VERL "+surprise=1", "!surprise '1' of verl is not read, and may change memory"},
        {"A=\"data.max_prompt_length=100  data.max_response_length=924 data.x=[1, 2]\"\n" VERL
         "\"$A\"",
         "context=1024 prompt=100"},
        {VERL "~actor_rollout_ref.ref",
         "!~actor_rollout_ref.ref '' of verl is not read, and may change memory"},
        {VERL "actor_rollout_ref.model.use_remove_padding=False",
         "!padded batches are not modelled under verl: use_remove_padding=True"},
        {"python3 -m verl.trainer.fsdp_sft_trainer data.train_files=x model.partial_pretrain=y",
         "!verl's supervised trainer is not modelled; its GRPO is"},
        {"source env.sh\n" VERL,
         "task=grpo?what the sourced file sets is not read: give it to --from too"},
        {"N=2; if mount x; then N=4; fi\n" VERL "actor_rollout_ref.rollout.n=$N",
         "samples=2?a variable is set under a condition that is not read: it is taken as set "
         "before"},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++)
        check_reading(&rows[i]);
}
