// The causes a log can name, one row each: what to call it, whether trying again may help, what it
// says about the run, and what to change, the cheapest first.
#include "core/base/compiler.h"
#include "core/doctor/internal.h"

#define SHORTEN  "shorter sequences or a smaller micro-batch, with more accumulation steps"
#define SPREAD   "more GPUs, with sharding (FSDP2, ZeRO-3) or sequence parallelism"
#define CHEAPER  "gradient checkpointing; a loss computed in chunks"
#define OFFLOAD  "parameters and optimizer states offloaded to the host"
#define MORE_RAM "more host memory for the job, or fewer processes on each node"
#define SEE_RANK "look at the rank that went silent first: the others only wait for it"

const struct doctor_kind doctor_kinds[] = {
    [KIND_EXHAUSTION] =
        {.name = "exhaustion",
         .title = "ran out of GPU memory",
         .class = DOCTOR_GPU_MEMORY,
         .weight = DOCTOR_CAUSE,
         .by_phase = true,
         .meaning = "What is free and what torch keeps cached would together not have been enough: "
                    "the job needs more memory than the card has. Another allocator setting "
                    "cannot help.",
         .remedies = {CHEAPER, SHORTEN, SPREAD, OFFLOAD}},
    [KIND_OVERSIZE] =
        {.name = "oversize",
         .title = "asked for more in one piece than the card has",
         .class = DOCTOR_GPU_MEMORY,
         .weight = DOCTOR_CAUSE,
         .by_phase = true,
         .kept = 1,
         .meaning = "This one tensor is larger than the card's memory. It is often an attention "
                    "matrix or logits over the whole sequence, or an input of the wrong shape.",
         .remedies = {"find the tensor in the traceback and check its shape",
                      "flash or memory-efficient attention; a loss computed in chunks", SHORTEN,
                      SPREAD}},
    [KIND_FRAGMENTATION] =
        {.name = "fragmentation",
         .title = "ran out of GPU memory by fragmentation",
         .class = DOCTOR_GPU_MEMORY,
         .weight = DOCTOR_CAUSE,
         .by_phase = true,
         .kept = 1,
         .meaning = "What is free and what torch keeps cached would have been enough in one piece. "
                    "The cached part lies in holes that the request does not fit into.",
         .remedies = {"PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True (torch 2.1 and later), "
                      "unless it is on already",
                      "sequences padded to few different lengths, so that blocks are used again",
                      "torch.cuda.empty_cache() between phases of different shape", SHORTEN}},
    [KIND_FULL] =
        {.name = "full",
         .title = "filled the card",
         .class = DOCTOR_GPU_MEMORY,
         .weight = DOCTOR_CAUSE,
         .by_phase = true,
         .kept = 1,
         .meaning =
             "Nearly all that torch holds is in use. What it keeps cached would have covered "
             "this request, but it is so little that the next one would fail.",
         .remedies = {"PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, which may just be enough",
                      CHEAPER, SHORTEN, SPREAD, OFFLOAD}},
    [KIND_LIMIT] =
        {.name = "limit",
         .title = "reached the limit set for this process",
         .class = DOCTOR_GPU_MEMORY,
         .weight = DOCTOR_CAUSE,
         .by_phase = true,
         .kept = 1,
         .meaning = "The card has memory left, but a per-process fraction forbids torch to take "
                    "it.",
         .remedies = {"raise or remove the limit (torch.cuda.set_per_process_memory_fraction, "
                      "per_process_memory_fraction in PYTORCH_CUDA_ALLOC_CONF; "
                      "PYTORCH_MPS_HIGH_WATERMARK_RATIO on a Mac)",
                      CHEAPER, SHORTEN}},
    [KIND_NEIGHBOUR] =
        {.name = "other-process",
         .title = "found the card partly taken by another process",
         .class = DOCTOR_GPU_MEMORY,
         .weight = DOCTOR_CAUSE,
         .by_phase = true,
         .kept = 3,
         .meaning = "The request would have fitted without what others hold on this card: another "
                    "job, a process left over from an earlier run, or an inference engine beside "
                    "the trainer.",
         .remedies = {"look with nvidia-smi, and end what should not be there",
                      "another card (CUDA_VISIBLE_DEVICES)",
                      "a smaller share for the inference engine that shares the card", CHEAPER}},
    [KIND_REFUSED] =
        {.name = "refused",
         .title = "was refused memory that the card reports as free",
         .class = DOCTOR_GPU_MEMORY,
         .weight = DOCTOR_CAUSE,
         .transient = true,
         .meaning = "More was free than asked for when the message was written. Either another "
                    "process gave memory back in between, or the driver limits one allocation "
                    "(Windows, WSL, integrated GPUs, MIG, a driver's defect).",
         .remedies = {"run again and watch nvidia-smi meanwhile",
                      "on Windows or WSL, raise the page file or the memory of the virtual machine",
                      "another driver version"}},
    [KIND_GPU_MEMORY] =
        {.name = "gpu-memory",
         .title = "ran out of GPU memory",
         .class = DOCTOR_GPU_MEMORY,
         .weight = DOCTOR_CAUSE,
         .by_phase = true,
         .kept = 1,
         .meaning = "The message does not say enough to tell exhaustion from fragmentation.",
         .remedies = {"PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", CHEAPER, SHORTEN,
                      SPREAD}},
    [KIND_OUTSIDE] = {.name = "outside-allocator",
                      .title = "ran out of GPU memory outside torch's allocator",
                      .class = DOCTOR_GPU_MEMORY,
                      .weight = DOCTOR_CAUSE,
                      .by_phase = true,
                      .kept = 1,
                      .meaning =
                          "The driver or a library asked for memory itself (a context, a module, a "
                          "graph, pinned host memory), and the card had none left for it. Torch's "
                          "numbers do not count such memory.",
                      .remedies = {"look with nvidia-smi for other processes on the card",
                                   "leave the driver some room: a smaller micro-batch, or a lower "
                                   "memory fraction for torch",
                                   "fewer processes or contexts on each card"}},
    [KIND_LIBRARY] =
        {.name = "library-memory",
         .title = "had no GPU memory left for cuBLAS or cuDNN",
         .class = DOCTOR_GPU_MEMORY,
         .weight = DOCTOR_CAUSE,
         .by_phase = true,
         .kept = 2,
         .meaning = "A handle or a workspace of the library could not be made. Torch does not "
                    "empty its cache and try again here, so a card filled by cached memory is "
                    "enough to cause it.",
         .remedies = {"torch.cuda.empty_cache() before the phase that fails",
                      "run one matrix product early, so that the handle is made while there is "
                      "room",
                      SHORTEN, "check for an index out of range: it can end in the same message"}},
    [KIND_NCCL_MEMORY] =
        {.name = "nccl-memory",
         .title = "had no GPU memory left for NCCL's buffers",
         .class = DOCTOR_GPU_MEMORY,
         .weight = DOCTOR_CAUSE,
         .meaning = "NCCL takes its buffers from the driver when a communicator is first used, "
                    "beside torch's allocator, which had taken the rest of the card.",
         .remedies = {"run one collective in each group before the first step",
                      "torch.cuda.empty_cache() before the first collective",
                      "fewer communicators; smaller NCCL_BUFFSIZE, fewer channels "
                      "(NCCL_MAX_NCHANNELS)",
                      SHORTEN}},
    [KIND_KV_CACHE] =
        {.name = "kv-cache",
         .title = "left no room for the inference engine's cache",
         .class = DOCTOR_GPU_MEMORY,
         .weight = DOCTOR_CAUSE,
         .phase = DOCTOR_PHASE_ENGINE,
         .meaning = "After weights and activations, what remained of the engine's share is less "
                    "than one sequence of the longest length needs.",
         .remedies = {"a smaller max_model_len",
                      "a larger gpu_memory_utilization, if nothing else needs the card",
                      "enforce_eager, which saves the memory of CUDA graphs",
                      "an 8-bit cache; more tensor parallel GPUs"}},
    [KIND_STARTUP_MEMORY] =
        {.name = "startup-memory",
         .title = "found less free memory at the start than the engine wants",
         .class = DOCTOR_GPU_MEMORY,
         .weight = DOCTOR_CAUSE,
         .phase = DOCTOR_PHASE_ENGINE,
         .transient = true,
         .meaning = "The engine's share is taken from the whole card, but part of the card was in "
                    "use already when it started.",
         .remedies = {"look with nvidia-smi, and end what should not be there",
                      "a smaller gpu_memory_utilization",
                      "start the engine before the trainer takes its memory"}},
    [KIND_STATIC_FRACTION] =
        {.name = "static-fraction",
         .title = "left no room for the inference engine's cache",
         .class = DOCTOR_GPU_MEMORY,
         .weight = DOCTOR_CAUSE,
         .phase = DOCTOR_PHASE_ENGINE,
         .meaning = "The weights alone take more than the fraction of the card that sglang keeps "
                    "for weights and cache together.",
         .remedies = {"a larger --mem-fraction-static", "a larger --tp-size", "a quantized model"}},
    [KIND_KV_SLOTS] = {.name = "kv-slots",
                       .title = "ran out of slots in the inference engine's cache",
                       .class = DOCTOR_GPU_MEMORY,
                       .weight = DOCTOR_CAUSE,
                       .phase = DOCTOR_PHASE_GENERATE,
                       .meaning = "The cache's tokens were used up, not the card's memory.",
                       .remedies = {"fewer requests at a time (--max-running-requests)",
                                    "a larger --mem-fraction-static", "a smaller --page-size"}},
    [KIND_KERNEL_MEMORY] =
        {.name = "kernel-shared-memory",
         .title = "needs more shared memory in a kernel than the GPU has",
         .class = DOCTOR_CONFIGURATION,
         .weight = DOCTOR_CAUSE,
         .meaning = "A Triton kernel's tiles do not fit into one multiprocessor. The card's "
                    "memory has nothing to do with it.",
         .remedies = {"smaller block sizes or num_stages in the kernel",
                      "another attention or kernel implementation",
                      "a GPU of a generation with more shared memory"}},
    [KIND_PRESSURE] =
        {.name = "pressure",
         .title = "ran at the edge of GPU memory",
         .class = DOCTOR_SIGN,
         .meaning = "The allocator had to give its whole cache back to find room. Steps are slow, "
                    "and a little more would have failed."},
    [KIND_RETRACTED] = {.name = "retracted",
                        .title = "made requests wait for room in the cache",
                        .class = DOCTOR_SIGN,
                        .meaning =
                            "The inference engine put requests back into its queue and went on."},
    [KIND_HOST_KERNEL] =
        {.name = "host-memory",
         .title = "was killed because the host ran out of memory",
         .class = DOCTOR_HOST_MEMORY,
         .weight = DOCTOR_CAUSE,
         .by_phase = true,
         .meaning = "The kernel's out-of-memory killer chose this process.",
         .remedies = {"fewer data loader workers and a smaller prefetch",
                      "load weights on one rank and broadcast them, or memory-map them",
                      MORE_RAM, "less offloaded to the host"}},
    [KIND_HOST_CGROUP] =
        {.name = "container-memory",
         .title = "was killed at its container's memory limit",
         .class = DOCTOR_HOST_MEMORY,
         .weight = DOCTOR_CAUSE,
         .by_phase = true,
         .kept = 1,
         .meaning = "The group of processes reached its memory limit, whatever the host still "
                    "had. Shared memory counts.",
         .remedies = {"a higher memory limit for the container or pod",
                      "fewer data loader workers and a smaller prefetch",
                      "less offloaded to the host"}},
    [KIND_HOST_SLURM] = {.name = "slurm-memory",
                         .title = "was killed at the memory limit of its Slurm job",
                         .class = DOCTOR_HOST_MEMORY,
                         .weight = DOCTOR_CAUSE,
                         .by_phase = true,
                         .kept = 1,
                         .meaning = "The job step used more host memory than it was given.",
                         .remedies = {"a larger --mem or --mem-per-gpu, --mem=0 for the whole node",
                                      "fewer data loader workers and a smaller prefetch",
                                      "less offloaded to the host"}},
    [KIND_HOST_RAY] =
        {.name = "ray-memory",
         .title = "was killed by Ray because the node ran low on memory",
         .class = DOCTOR_HOST_MEMORY,
         .weight = DOCTOR_CAUSE,
         .by_phase = true,
         .meaning = "Ray ends workers when the node's memory passes its threshold.",
         .remedies = {"fewer workers or actors on each node",
                      "a higher RAY_memory_usage_threshold, if the rest of the node can bear it",
                      MORE_RAM, "less offloaded to the host"}},
    [KIND_HOST_ALLOCATION] =
        {.name = "host-allocation",
         .title = "could not get host memory",
         .class = DOCTOR_HOST_MEMORY,
         .weight = DOCTOR_CAUSE,
         .by_phase = true,
         .kept = 1,
         .meaning = "The operating system refused memory to the process itself.",
         .remedies = {"check ulimit -v and the container's limit",
                      MORE_RAM, "load weights on one rank and broadcast them, or memory-map them"}},
    [KIND_HOST_LOADER] =
        {.name = "loader-killed",
         .title = "lost a data loader worker to a kill (SIGKILL)",
         .class = DOCTOR_HOST_MEMORY,
         .weight = DOCTOR_FAULT,
         .meaning = "Nobody but the kernel's out-of-memory killer usually ends such a worker: the "
                    "host or the container ran out of memory.",
         .remedies = {"fewer data loader workers and a smaller prefetch",
                      "look into dmesg or journalctl -k, or at the container's last state",
                      MORE_RAM}},
    [KIND_SHARED_MEMORY] =
        {.name = "shared-memory",
         .title = "ran out of shared memory (/dev/shm)",
         .class = DOCTOR_HOST_MEMORY,
         .weight = DOCTOR_CAUSE,
         .meaning = "Data loader workers and NCCL pass data through /dev/shm, which containers "
                    "make small.",
         .remedies = {"docker run --shm-size=16g (or --ipc=host), an emptyDir of medium Memory "
                      "in Kubernetes",
                      "fewer data loader workers"}},
    [KIND_BUS_ERROR] =
        {.name = "bus-error",
         .title = "died of a bus error (SIGBUS)",
         .class = DOCTOR_HOST_MEMORY,
         .weight = DOCTOR_FAULT,
         .meaning =
             "Memory that is backed by a file could not be had. That is most often /dev/shm, "
             "which containers make small; or a mapped file was cut under the process.",
         .remedies = {"docker run --shm-size=16g (or --ipc=host), an emptyDir of medium Memory "
                      "in Kubernetes",
                      "fewer data loader workers", "df -h for the disks of mapped files"}},
    [KIND_KILLED] =
        {.name = "killed",
         .title = "was killed (SIGKILL)",
         .class = DOCTOR_STOPPED,
         .weight = DOCTOR_CIRCUMSTANCE,
         .by_phase = true,
         .kept = 1,
         .meaning = "Somebody outside ended the process without warning. That is most often the "
                    "host's out-of-memory killer, but this log does not say so.",
         .remedies = {"look into dmesg or journalctl -k, or at the container's last state",
                      "watch the host's memory; fewer data loader workers, less offloaded"}},
    [KIND_DISK] = {.name = "disk-full",
                   .title = "could not write: the disk is full",
                   .class = DOCTOR_DISK,
                   .weight = DOCTOR_CAUSE,
                   .meaning =
                       "A checkpoint, a cache or a log did not fit on its file system, or passed a "
                       "quota.",
                   .remedies = {"df -h and quota for the folder; old checkpoints removed",
                                "fewer checkpoints kept (save_total_limit)",
                                "TMPDIR and HF_HOME on a larger disk"}},
    [KIND_NCCL_ERROR] =
        {.name = "nccl-error",
         .title = "failed in a collective (NCCL)",
         .class = DOCTOR_DEVICE_ERROR,
         .weight = DOCTOR_FAULT,
         .transient = true,
         .meaning = "NCCL reported an error that is not about memory: the network, a peer that "
                    "went away, or the way it was called.",
         .remedies = {"NCCL_DEBUG=INFO, and the first NCCL WARN line of any rank",
                      "check the interfaces (NCCL_SOCKET_IFNAME, NCCL_IB_HCA) and /dev/shm",
                      "one GPU for each rank; the same NCCL version everywhere"}},
    [KIND_COLLECTIVE_TIMEOUT] =
        {.name = "collective-timeout",
         .title = "waited too long in a collective",
         .class = DOCTOR_TIMEOUT,
         .weight = DOCTOR_CIRCUMSTANCE,
         .transient = true,
         .meaning = "At least one rank did not take part in time: it died, hung, was busy (saving, "
                    "preparing data, compiling), or called another collective.",
         .remedies = {SEE_RANK, "py-spy dump on a hanging rank",
                      "a longer timeout (init_process_group(timeout=), ddp_timeout)"}},
    [KIND_CUDA_FAULT] =
        {.name = "cuda-fault",
         .title = "failed in a CUDA kernel",
         .class = DOCTOR_DEVICE_ERROR,
         .weight = DOCTOR_FAULT,
         .transient = false,
         .meaning = "A kernel read or wrote where it must not, or its own check failed. An index "
                    "out of range (a token id beyond the vocabulary, a label, a position) is the "
                    "usual reason.",
         .remedies = {"CUDA_LAUNCH_BLOCKING=1 to see which operation it was",
                      "check ids, labels and positions against the sizes of the model",
                      "another version of the extension whose kernel it is"}},
    [KIND_CUDA_HARDWARE] =
        {.name = "gpu-hardware",
         .title = "was stopped by an error of the GPU itself",
         .class = DOCTOR_DEVICE_ERROR,
         .weight = DOCTOR_CAUSE,
         .transient = true,
         .meaning = "The card reported an uncorrectable memory error, fell off the bus or lost its "
                    "context.",
         .remedies = {"run again on another card or node",
                      "nvidia-smi -q and dmesg for Xid numbers; reset or replace the card"}},
    [KIND_CUDA_SETUP] = {.name = "gpu-setup",
                         .title = "could not use the GPU as it is set up",
                         .class = DOCTOR_CONFIGURATION,
                         .weight = DOCTOR_FAULT,
                         .meaning =
                             "Driver, build of torch and visible devices do not go together.",
                         .remedies = {"check CUDA_VISIBLE_DEVICES against the number of ranks",
                                      "a build of torch for this driver and GPU"}},
    [KIND_RENDEZVOUS] =
        {.name = "rendezvous",
         .title = "could not bring its ranks together",
         .class = DOCTOR_TIMEOUT,
         .weight = DOCTOR_FAULT,
         .transient = true,
         .meaning = "The processes did not find each other: a port in use, a wrong address, or "
                    "ranks that never started.",
         .remedies = {"another --master_port or --rdzv_endpoint; end what still listens there",
                      "check that every node started and resolves the first one's name"}},
    [KIND_PEER_LOST] = {.name = "peer-lost",
                        .title = "lost the connection to another rank",
                        .class = DOCTOR_DEVICE_ERROR,
                        .weight = DOCTOR_AFTERMATH,
                        .transient = true,
                        .meaning =
                            "Another process ended first; its own message is the one to look for.",
                        .remedies = {SEE_RANK}},
    [KIND_CRASH] =
        {.name = "crash",
         .title = "crashed in native code",
         .class = DOCTOR_DEVICE_ERROR,
         .weight = DOCTOR_CIRCUMSTANCE,
         .meaning = "The process died of a segmentation fault or an illegal instruction, not of "
                    "an exception.",
         .remedies = {"python -X faulthandler for the Python side of the stack",
                      "extensions built for this torch and Python version"}},
    [KIND_ABORTED] =
        {.name = "aborted",
         .title = "aborted in native code (SIGABRT)",
         .class = DOCTOR_DEVICE_ERROR,
         .weight = DOCTOR_CIRCUMSTANCE,
         .meaning = "A library gave up: an exception of C++ that nobody caught, a failed check, or "
                    "NCCL's watchdog. It has usually said why, just before.",
         .remedies = {"read what this rank printed before it",
                      "python -X faulthandler for the Python side of the stack"}},
    [KIND_RAY_WORKER] =
        {.name = "ray-worker-lost",
         .title = "lost a Ray worker",
         .class = DOCTOR_STOPPED,
         .weight = DOCTOR_AFTERMATH,
         .meaning =
             "A worker's process ended. If it says nothing itself, it was killed (most often "
             "for the host's memory) or crashed in native code.",
         .remedies = {"read the worker's own files under /tmp/ray/session_latest/logs",
                      "look into dmesg or journalctl -k for kills", MORE_RAM}},
    [KIND_CHILD] =
        {.name = "child-failed",
         .title = "ended with an error that only its launcher reports",
         .class = DOCTOR_STOPPED,
         .weight = DOCTOR_AFTERMATH,
         .meaning = "The launcher reports the exit status of a process; what that process said is "
                    "not in this log.",
         .remedies = {"read the log of the process itself (torchrun --log-dir, --tee 3)",
                      "decorate the entry point with torch.distributed.elastic's @record"}},
    [KIND_INTERRUPTED] = {.name = "interrupted",
                          .title = "was interrupted (Ctrl-C)",
                          .class = DOCTOR_STOPPED,
                          .weight = DOCTOR_CIRCUMSTANCE,
                          .meaning = "Somebody, or the launcher, sent SIGINT.",
                          .remedies = {"resume from the last checkpoint"}},
    [KIND_NETWORK] =
        {.name = "network",
         .title = "could not reach a server",
         .class = DOCTOR_DEVICE_ERROR,
         .weight = DOCTOR_CIRCUMSTANCE,
         .transient = true,
         .meaning = "A request to a hub, a tracker or another service failed. This is not the "
                    "network between ranks.",
         .remedies = {"check that the node can reach the server (proxies, name resolution)",
                      "download on a node that can, then HF_HUB_OFFLINE=1 or a local path",
                      "WANDB_MODE=offline where the tracker is meant"}},
    [KIND_TIME_LIMIT] = {.name = "time-limit",
                         .title = "reached the time limit of its job",
                         .class = DOCTOR_TIMEOUT,
                         .weight = DOCTOR_CAUSE,
                         .meaning = "The scheduler ended the job when its time was up.",
                         .remedies = {"resume from the last checkpoint", "a longer --time"}},
    [KIND_CANCELLED] = {.name = "cancelled",
                        .title = "was cancelled by the scheduler",
                        .class = DOCTOR_STOPPED,
                        .weight = DOCTOR_FAULT,
                        .transient = true,
                        .meaning =
                            "The job was preempted, its node failed, or somebody cancelled it.",
                        .remedies = {"resume from the last checkpoint",
                                     "sacct -j JOB for the reason"}},
    [KIND_TERMINATED] =
        {.name = "terminated",
         .title = "was asked to stop (SIGTERM)",
         .class = DOCTOR_STOPPED,
         .weight = DOCTOR_AFTERMATH,
         .transient = true,
         .meaning = "The launcher, the scheduler or a person stopped it; launchers do so to the "
                    "remaining ranks when one has died.",
         .remedies = {SEE_RANK}},
    [KIND_HANGUP] =
        {.name = "hangup",
         .title = "was stopped when its terminal went away (SIGHUP)",
         .class = DOCTOR_STOPPED,
         .weight = DOCTOR_CIRCUMSTANCE,
         .transient = true,
         .meaning = "The shell or the connection that started it ended. torchrun ends its workers "
                    "then, under nohup too.",
         .remedies = {"start it in tmux or screen, with setsid, or as a batch job"}},
    [KIND_MISSING_MODULE] =
        {.name = "missing-module",
         .title = "could not import what it needs",
         .class = DOCTOR_CONFIGURATION,
         .weight = DOCTOR_CIRCUMSTANCE,
         .meaning = "A Python module or a shared library is missing or does not fit.",
         .remedies = {"install it in the environment that the job runs in",
                      "where a symbol is missing: build it for the torch and CUDA that are there"}},
    [KIND_MODEL_MISSING] = {.name = "model-missing",
                            .title = "could not find the model or a file of it",
                            .class = DOCTOR_CONFIGURATION,
                            .weight = DOCTOR_FAULT,
                            .meaning = "The path or name leads to no model, or the hub refused it.",
                            .remedies = {"check the path on the node that runs the job",
                                         "log in to the hub (HF_TOKEN) where the model is gated"}},
    [KIND_ARGUMENTS] = {.name = "arguments",
                        .title = "was started with arguments that it does not take",
                        .class = DOCTOR_CONFIGURATION,
                        .weight = DOCTOR_CAUSE,
                        .meaning = "The program refused its command line or configuration file.",
                        .remedies = {"compare with the --help of the installed version"}},
    [KIND_CONTEXT_PARALLEL] =
        {.name = "context-parallel",
         .title = "refused its configuration of context parallelism",
         .class = DOCTOR_CONFIGURATION,
         .weight = DOCTOR_FAULT,
         .meaning = "Context or sequence parallelism does not go with another setting, the model "
                    "or the batches. It will fail the same way again.",
         .remedies = {"context parallelism of torch wants FSDP2 (fsdp_version: 2), attention by "
                      "sdpa, causal attention in every layer, no packing, and lengths that are "
                      "multiples of 2 x cp_size",
                      "sequence parallelism (Ulysses) instead: sp_size with DeepSpeed",
                      "without either: a loss in chunks, offloading, more sharding"}},
    [KIND_CONFIGURATION] =
        {.name = "configuration",
         .title = "refused its configuration",
         .class = DOCTOR_CONFIGURATION,
         .weight = DOCTOR_FAULT,
         .meaning = "Settings contradict each other or the model. It will fail the same way again.",
         .remedies = {"change the setting that the message names"}},
    [KIND_RESOURCE_LIMIT] =
        {.name = "resource-limit",
         .title = "reached a limit on processes, threads or open files",
         .class = DOCTOR_CONFIGURATION,
         .weight = DOCTOR_CAUSE,
         .meaning = "The operating system or the container allows no more of them to this user.",
         .remedies = {"ulimit -u and ulimit -n, the container's limit on processes",
                      "fewer data loader workers; OMP_NUM_THREADS=1",
                      "torch.multiprocessing.set_sharing_strategy('file_system')"}},
    [KIND_DIVERGED] =
        {.name = "diverged",
         .title = "stopped because its numbers were no longer finite",
         .class = DOCTOR_CONFIGURATION,
         .weight = DOCTOR_FAULT,
         .meaning =
             "Gradients or losses overflowed again and again. This is no question of memory.",
         .remedies = {"bf16 instead of fp16, where the card has it",
                      "a lower learning rate, more warm-up; look at the batch that did it"}},
    [KIND_EXCEPTION] =
        {.name = "exception",
         .title = "ended with an exception",
         .class = DOCTOR_CONFIGURATION,
         .weight = DOCTOR_CIRCUMSTANCE,
         .meaning = "An exception of the program itself; nothing else in the log explains it.",
         .remedies = {"read the traceback above the message"}},
};

const ptrdiff_t doctor_kind_count = COUNT_OF(doctor_kinds);

const char *doctor_class_name(enum doctor_class class)
{
    static const char *const names[] = {
        [DOCTOR_GPU_MEMORY] = "gpu_memory",
        [DOCTOR_HOST_MEMORY] = "host_memory",
        [DOCTOR_DEVICE_ERROR] = "device_error",
        [DOCTOR_TIMEOUT] = "timeout",
        [DOCTOR_CONFIGURATION] = "configuration",
        [DOCTOR_DISK] = "disk",
        [DOCTOR_STOPPED] = "stopped",
        [DOCTOR_SIGN] = "sign",
    };
    return names[class];
}

const char *doctor_said_name(enum doctor_said said)
{
    static const char *const names[] = {
        [DOCTOR_SAID_BATCH] = "batch",
        [DOCTOR_SAID_ACCUMULATION] = "accumulation",
        [DOCTOR_SAID_TOTAL_BATCH] = "global_batch",
        [DOCTOR_SAID_EVAL_BATCH] = "eval_batch",
        [DOCTOR_SAID_EVAL_SIZE] = "eval_size",
    };
    return names[said];
}

const char *doctor_field_name(enum doctor_field field)
{
    static const char *const names[] = {
        [DOCTOR_TRIED] = "tried_bytes",
        [DOCTOR_CAPACITY] = "capacity_bytes",
        [DOCTOR_FREE] = "free_bytes",
        [DOCTOR_PROCESS] = "process_bytes",
        [DOCTOR_OTHERS] = "other_processes_bytes",
        [DOCTOR_ALLOWED] = "allowed_bytes",
        [DOCTOR_ALLOCATED] = "allocated_bytes",
        [DOCTOR_PRIVATE] = "private_pools_bytes",
        [DOCTOR_UNALLOCATED] = "unallocated_bytes",
        [DOCTOR_RESERVED] = "reserved_bytes",
        [DOCTOR_NEEDED] = "needed_bytes",
        [DOCTOR_AVAILABLE] = "available_bytes",
        [DOCTOR_HOST_USED] = "host_used_bytes",
        [DOCTOR_HOST_TOTAL] = "host_total_bytes",
    };
    return names[field];
}
