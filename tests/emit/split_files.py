#!/usr/bin/env python3
"""The launch files of `fathom split --emit`: their syntax, and what they really start, recorded by stand-ins.

Usage: split_files.py BUILD-FOLDER

Every framework, apart and colocated where it has both, on one node and on two. Scripts pass `bash -n` (and shellcheck
where there is one), YAML is read, Python compiles. launch.sh, and job.sbatch on several nodes, run with stand-ins for
ray, srun, curl and the frameworks: the teacher answers before Ray starts, masks of teacher and Ray are disjoint and cover
every GPU, the sizes are those of the division.
"""
import ast
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile

try:
    import yaml
except ImportError:  # the reader below does for what is written here
    yaml = None

MODELS = ["--teacher", "Qwen3-32B", "--student", "Qwen3-4B"]
VISION = ["--teacher", "Qwen3-VL-30B-A3B-Thinking", "--student", "Qwen3-VL-4B-Thinking", "--images", "1"]
CASES = [("slime", "apart", 1, MODELS), ("slime", "colocated", 1, MODELS), ("slime", "apart", 2, MODELS),
         ("slime", "colocated", 2, MODELS), ("slime", "apart", 1, VISION), ("trinity", "apart", 1, MODELS),
         ("trinity", "apart", 2, MODELS), ("verl", "colocated", 1, MODELS), ("verl", "colocated", 2, VISION),
         ("trl", "apart", 1, MODELS), ("trl", "colocated", 1, MODELS)]
REFUSED = [(["--framework", "trinity", *VISION], "text only"), (["--framework", "trl", *VISION], "no images"),
           ([*MODELS], "--framework slime"), (["--framework", "trl", *MODELS], "one node")]
# A program that says what it was called with, and for how long it stays.
STAND_IN = """#!/bin/bash
printf '%s\\t%s\\t%s\\t%s\\n' "$(basename "$0")" "${CUDA_VISIBLE_DEVICES:-}" "${NODE_RANK:-}" "$*" >>"$RECORD"
case "$(basename "$0") $*" in
"python3 -c import sys, huggingface"*) echo /model ;;
*launch_server*|*vllm-serve*) sleep 60 ;;
curl*) sleep 0.3 ;;
esac
"""
SRUN = """#!/bin/bash
while [[ $1 = -* ]]; do [ "$1" = -w ] && shift; shift; done
exec "$@"
"""


def read_plain(lines, indent=0):
    """Mappings, lists of mappings, and scalars: all that the files here have of YAML."""
    result = {}
    while lines and len(lines[0]) - len(lines[0].lstrip()) >= indent:
        line = lines[0]
        if len(line) - len(line.lstrip()) > indent:
            raise ValueError(line)
        if line.lstrip().startswith("- "):
            items = []
            while lines and lines[0].startswith(" " * indent + "- "):
                lines[0] = lines[0].replace("- ", "  ", 1)
                items.append(read_plain(lines, indent + 2))
            return items
        key, _, value = lines.pop(0).strip().partition(":")
        value = value.strip()
        if value:
            result[key] = int(value) if value.isdigit() else value.strip('"')
        elif lines and len(lines[0]) - len(lines[0].lstrip()) > indent:
            result[key] = read_plain(lines, len(lines[0]) - len(lines[0].lstrip()))
        else:
            result[key] = None
    return result


def read_yaml(text):
    found = read_plain([line for line in text.splitlines() if line.strip() and not line.strip().startswith("#")])
    if yaml and yaml.safe_load(text).keys() != found.keys():
        raise ValueError("the plain reader reads otherwise")
    return found


class Judge:
    def __init__(self, fathom):
        self.fathom, self.bad = fathom, 0

    def check(self, what, true):
        if not true:
            print("FAILED: " + what)
            self.bad += 1

    def split(self, *words):
        done = subprocess.run([self.fathom, "split", *words, "--json"], capture_output=True, text=True, check=False)
        return json.loads(done.stdout)


def check_syntax(judge, what, folder):
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if name.endswith((".sh", ".sbatch", ".env")):
            judge.check("%s: bash -n %s" % (what, name), subprocess.run(["bash", "-n", path], check=False).returncode == 0)
        if name.endswith((".sh", ".sbatch")) and shutil.which("shellcheck"):
            done = subprocess.run(["shellcheck", "-S", "warning", "-s", "bash", "-e", "SC1090,SC1091,SC2154", path],
                                  capture_output=True, text=True, check=False)
            judge.check("%s: shellcheck %s\n%s" % (what, name, done.stdout), done.returncode == 0)
        text = open(path, encoding="utf-8").read()
        judge.check("%s: a fact is left in %s" % (what, name), not re.search(r"@[a-z_]+@", text))
        if name.endswith(".yaml"):
            judge.check("%s: %s is read" % (what, name), isinstance(read_yaml(text), dict))
        if name.endswith(".py"):
            ast.parse(text)


def stand_ins(folder):
    tools = os.path.join(folder, "bin")
    os.mkdir(tools)
    for name in ("ray", "curl", "python3", "trinity", "trl", "accelerate", "srun", "scontrol"):
        path = os.path.join(tools, name)
        text = {"srun": SRUN, "scontrol": "#!/bin/bash\nprintf 'node0\\nnode1\\n'\n"}.get(name, STAND_IN)
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
        os.chmod(path, stat.S_IRWXU)
    models = os.path.join(folder, "slime", "scripts", "models")
    os.makedirs(models)
    for name in ("qwen3-4B",):
        with open(os.path.join(models, name + ".sh"), "w", encoding="utf-8") as out:
            out.write("MODEL_ARGS=(--num-layers 36)\n")
    return tools


def run(folder, files, nodes):
    """What was started, in order: (program, mask, node, words)."""
    record = os.path.join(folder, "record")
    environment = dict(os.environ, PATH=stand_ins(folder) + ":" + os.environ["PATH"], RECORD=record, HOME=folder,
                       SLIME=os.path.join(folder, "slime"), SLURM_SUBMIT_DIR=files, SLURM_JOB_NODELIST="n", SLURM_JOB_ID="7")
    environment.pop("CUDA_VISIBLE_DEVICES", None)
    script = "launch.sh" if nodes == 1 else "job.sbatch"
    done = subprocess.run(["bash", os.path.join(files, script)], capture_output=True, text=True, check=False, cwd=files,
                          env=environment, timeout=60)
    lines = [line.split("\t") for line in open(record, encoding="utf-8").read().splitlines()]
    return done, [line for line in lines if len(line) == 4]


def masks(lines, pattern):
    """GPUs by node that were given to programs whose words match."""
    found = set()
    for program, mask, node, words in lines:
        if re.search(pattern, program + " " + words):
            found |= {(int(node or 0), int(gpu)) for gpu in mask.split(",") if gpu}
    return found


def option(lines, pattern, name):
    for program, _, _, words in lines:
        if re.search(pattern, program + " " + words):
            found = re.search(re.escape(name) + r"[ =](\S+)", words)
            return found and found.group(1)
    return None


def check_run(judge, what, case, reply, files, folder):
    framework, layout, nodes, _ = case
    roles = {role["role"]: role for role in reply["best"]["roles"]}
    done, lines = run(folder, files, nodes)
    judge.check("%s: it runs\n%s" % (what, done.stderr[-400:]), done.returncode == 0)
    every = {(node, gpu) for node in range(nodes) for gpu in range(8)}
    teacher = masks(lines, "launch_server|vllm-serve --model Qwen/Qwen3-32B")
    student = masks(lines, "ray start|accelerate launch|vllm-serve --model Qwen/Qwen3-4B")
    judge.check(what + ": every GPU has a program, and one", not teacher & student and teacher | student == every)
    if framework in ("slime", "trl"):
        judge.check(what + ": the teacher's GPUs", len(teacher) == roles["teacher"]["gpus"])
        order = [program for program, _, _, words in lines if program == "curl" or words.startswith(("start", "launch"))]
        judge.check(what + ": the teacher answers first", nodes > 1 or order[0] == "curl")
    else:
        judge.check(what + ": the framework starts the teacher", not teacher)
    if framework == "slime":
        train = "train.py"
        judge.check(what + ": sizes", option(lines, train, "--actor-num-gpus-per-node") == str(
            roles["train"]["gpus"] // roles["train"]["nodes"]) and option(lines, train, "--rollout-num-gpus-per-engine")
            == str(roles["rollout"]["tp"]))
        words = " ".join(line[3] for line in lines)
        judge.check(what + ": colocate", ("--colocate" in words) == (layout == "colocated"))
        judge.check(what + ": images", ("--multimodal-keys" in words) == ("VL" in words))
    if framework == "verl":
        main_words = "main_ppo"
        judge.check(what + ": pools", option(lines, main_words, "distillation.n_gpus_per_node") is not None
                    and int(option(lines, main_words, "distillation.n_gpus_per_node"))
                    * int(option(lines, main_words, "distillation.nnodes")) == roles["teacher"]["gpus"])
        judge.check(what + ": images", (option(lines, main_words, "data.image_key") == "images") == (nodes == 2))


def check_keys(judge, what, case, reply, files):
    """What Trinity's file says of the division."""
    roles = {role["role"]: role for role in reply["best"]["roles"]}
    document = read_yaml(open(os.path.join(files, "trinity.yaml"), encoding="utf-8").read())
    explorer, cluster = document["explorer"], document["cluster"]
    teacher = explorer["auxiliary_models"][0]
    judge.check(what + ": engines", teacher["engine_num"] * teacher["tensor_parallel_size"] == roles["teacher"]["gpus"]
                and explorer["rollout_model"]["engine_num"] == roles["rollout"]["engines"])
    judge.check(what + ": GPUs", cluster["node_num"] * cluster["gpu_per_node"] == case[2] * 8
                and document["buffer"]["train_batch_size"] % roles["train"]["gpus"] == 0)


def main():
    judge = Judge(os.path.abspath(os.path.join(sys.argv[1], "fathom")))
    for case in CASES:
        framework, layout, nodes, models = case
        what = "%s, %s, %d nodes" % (framework, layout, nodes)
        with tempfile.TemporaryDirectory() as folder:
            files = os.path.join(folder, "it's here")
            reply = judge.split(*models, "--gpu", "%dx8xH100-80G" % nodes, "--framework", framework, "--layout", layout,
                                "--emit", files)
            judge.check(what + ": written", sorted(file["name"] for file in reply.get("files", [])) == sorted(
                os.listdir(files)))
            check_syntax(judge, what, files)
            check_run(judge, what, case, reply, files, folder)
            if framework == "trinity":
                check_keys(judge, what, case, reply, files)
            if framework == "slime":
                text = open(os.path.join(files, "split.env"), encoding="utf-8").read()
                judge.check(what + ": the guide's variables", all(name in text for name in (
                    "SLIME_SCRIPT_NUM_GPUS=", "SLIME_SCRIPT_NUM_GPUS_TEACHER=", "SLIME_SCRIPT_NUM_GPUS_STUDENT=",
                    "SLIME_SCRIPT_TEACHER_MODEL=", "SLIME_SCRIPT_STUDENT_MODEL=")))
                version = "0.3.0" if models is VISION else "624b824"
                launch = open(os.path.join(files, "launch.sh"), encoding="utf-8").read()
                judge.check(what + ": the version", version in launch)
                wrong = subprocess.run(["bash", "-c", "source ./split.env"], cwd=files, capture_output=True, text=True,
                                       check=False, env=dict(os.environ, SLIME_SCRIPT_NUM_GPUS_TEACHER="9"))
                judge.check(what + ": a sum that is not", wrong.returncode == 2)
    for words, expected in REFUSED:
        with tempfile.TemporaryDirectory() as folder:
            gpu = "2x8xH100-80G" if expected == "one node" else "8xH100-80G"
            reply = judge.split(*words, "--gpu", gpu, "--emit", os.path.join(folder, "none"))
            judge.check("%s: %s" % (words, reply.get("error")), expected in reply.get("error", {}).get("message", ""))
    sys.exit(bool(judge.bad))


if __name__ == "__main__":
    main()
