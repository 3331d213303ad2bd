// How each cause is said. A row is an anchor to scan for and what else the line must hold; the
// first row of an anchor whose needs are met wins, and the heaviest cause of a line.
#include <string.h>

#include "core/base/compiler.h"
#include "core/doctor/internal.h"

const struct symptom symptoms[] = {
    // torch's allocator, any version and device; cudaMallocAsync; TensorFlow and JAX.
    {"out of memory. Tried to allocate", "Failed to clone() tensor|state_dict() call",
     KIND_GPU_MEMORY, SYMPTOM_TORCH, NULL, DOCTOR_PHASE_SAVE},
    {"out of memory. Tried to allocate", NULL, KIND_GPU_MEMORY, SYMPTOM_TORCH},
    {"out of memory", "MPS backend|Tried to allocate", KIND_GPU_MEMORY, SYMPTOM_TORCH},
    {"would exceed allowed memory", "Allocation on device", KIND_GPU_MEMORY,
     SYMPTOM_TORCH | SYMPTOM_LINES},
    {"RESOURCE_EXHAUSTED", "Out of memory", KIND_GPU_MEMORY, 0},
    {"out of memory", "OutOfMemoryError: CUDA out of memory", KIND_GPU_MEMORY, 0},
    {"out of memory", "RuntimeError: CUDA out of memory", KIND_GPU_MEMORY, 0},

    // GPU memory that torch does not manage.
    {"out of memory", "Cuda failure", KIND_NCCL_MEMORY, 0},
    {"Failed to CUDA calloc", NULL, KIND_NCCL_MEMORY, 0},
    {"Failed to CUDA malloc", NULL, KIND_NCCL_MEMORY, 0},
    {"Failed to Cuda calloc", NULL, KIND_NCCL_MEMORY, 0},
    {"out of memory", "CUDA error: out of memory", KIND_OUTSIDE, 0},
    {"out of memory", "HIP error: out of memory", KIND_OUTSIDE, 0},
    {"out of memory", "CUDA driver error", KIND_OUTSIDE, 0},
    {"out of memory", "cudaMalloc failed", KIND_OUTSIDE, 0},
    {"out of memory", "cuda runtime error (2)", KIND_OUTSIDE, 0},
    {"out of memory", "CUDA_ERROR_OUT_OF_MEMORY", KIND_OUTSIDE, 0},
    {"CUDA_ERROR_OUT_OF_MEMORY", NULL, KIND_OUTSIDE, 0},
    {"HIP_ERROR_OutOfMemory", NULL, KIND_OUTSIDE, 0},
    {"cudaErrorMemoryAllocation", NULL, KIND_OUTSIDE, 0},
    {"HSA_STATUS_ERROR_OUT_OF_RESOURCES", NULL, KIND_OUTSIDE, 0},
    {"CUBLAS_STATUS_ALLOC_FAILED", NULL, KIND_LIBRARY, 0},
    {"CUBLAS_STATUS_NOT_INITIALIZED", "cublasCreate", KIND_LIBRARY, 0},
    {"CUBLAS_STATUS_INTERNAL_ERROR", "cublasCreate", KIND_LIBRARY, 0},
    {"CUDNN_STATUS_ALLOC_FAILED", NULL, KIND_LIBRARY, 0},
    {"CUSOLVER_STATUS_ALLOC_FAILED", NULL, KIND_LIBRARY, 0},
    {"CUSPARSE_STATUS_ALLOC_FAILED", NULL, KIND_LIBRARY, 0},
    {"HIPBLAS_STATUS_ALLOC_FAILED", NULL, KIND_LIBRARY, 0},

    // Inference engines.
    {"No available memory for the cache blocks", NULL, KIND_KV_CACHE, 0},
    {"KV cache is needed, which is larger than", NULL, KIND_KV_CACHE, 0},
    {"is larger than the maximum number of tokens that can be stored in KV cache", NULL,
     KIND_KV_CACHE, 0},
    {"Insufficient memory to allocate KV-caches", NULL, KIND_KV_CACHE, 0},
    {"is less than desired GPU memory utilization", NULL, KIND_STARTUP_MEMORY, 0},
    {"Error in memory profiling", "free memory", KIND_STARTUP_MEMORY, 0},
    {"Not enough memory. Please try to increase --mem-fraction-static", NULL, KIND_STATIC_FRACTION,
     0},
    {"Loaded weights leave no GPU memory", NULL, KIND_STATIC_FRACTION, 0},
    {"out of memory happened", NULL, KIND_RETRACTED, 0},
    {"out of memory. Try to lower your batch size", NULL, KIND_KV_SLOTS, 0},
    {"Out of memory. Try to lower your batch size", NULL, KIND_KV_SLOTS, 0},
    {"out of resource: shared memory", NULL, KIND_KERNEL_MEMORY, 0},
    {"pytorch allocator cache flushes since last step", NULL, KIND_PRESSURE, 0},

    // The host's memory.
    {"Memory cgroup out of memory", NULL, KIND_HOST_CGROUP, 0},
    {"constraint=CONSTRAINT_MEMCG", NULL, KIND_HOST_CGROUP, 0},
    {"OOMKilled", NULL, KIND_HOST_CGROUP, 0},
    {"Out of memory: Kill", NULL, KIND_HOST_KERNEL, 0},
    {"constraint=CONSTRAINT_NONE", "oom-kill", KIND_HOST_KERNEL, 0},
    {"oom_kill event", NULL, KIND_HOST_SLURM, 0},
    {"oom-kill event", NULL, KIND_HOST_SLURM, 0},
    {": Out Of Memory", "srun", KIND_HOST_SLURM, 0},
    {"memory limit", "slurmstepd|being killed", KIND_HOST_SLURM, 0},
    {"Exceeded job memory limit", NULL, KIND_HOST_SLURM, 0},
    {"due to the node running low on memory", NULL, KIND_HOST_RAY, SYMPTOM_LINES},
    {"killed due to memory pressure (OOM)", NULL, KIND_HOST_RAY, 0},
    {"RayOutOfMemoryError", NULL, KIND_HOST_RAY, 0},
    {"DefaultCPUAllocator: ", "tried to allocate", KIND_HOST_ALLOCATION, 0},
    {"Cannot allocate memory", NULL, KIND_HOST_ALLOCATION, 0},
    {"std::bad_alloc", NULL, KIND_HOST_ALLOCATION, 0},
    {"MemoryError: Unable to allocate", NULL, KIND_HOST_ALLOCATION, 0},
    {"\nMemoryError", NULL, KIND_HOST_ALLOCATION, 0},
    {"]: MemoryError", NULL, KIND_HOST_ALLOCATION, 0},
    {"out of shared memory", NULL, KIND_SHARED_MEMORY, 0},
    {"insufficient shared memory (shm)", NULL, KIND_SHARED_MEMORY, 0},
    {"Error while creating shared memory segment", NULL, KIND_SHARED_MEMORY, 0},
    {"No space left on device", "/dev/shm", KIND_SHARED_MEMORY, 0},
    {"No space left on device", "</torch_", KIND_SHARED_MEMORY, 0},

    {"Exceeded step memory limit", NULL, KIND_HOST_SLURM, 0},
    {"TERM_MEMLIMIT: job killed", NULL, KIND_HOST_SLURM, 0}, // LSF
    {"PBS: job killed: mem", NULL, KIND_HOST_SLURM, 0},
    {"low on resource: memory", NULL, KIND_HOST_KERNEL, 0}, // a kubelet's
    {"condition: [MemoryPressure]", NULL, KIND_HOST_KERNEL, 0},
    {"systemd-oomd", "Killed", KIND_HOST_KERNEL, 0},
    {"SIGTERM to process", "earlyoom", KIND_HOST_KERNEL, 0},
    {"SIGKILL to process", "earlyoom", KIND_HOST_KERNEL, 0},
    {"is killed by signal: Killed", "DataLoader worker", KIND_HOST_LOADER, 0},
    {"is killed by signal: Bus error", NULL, KIND_BUS_ERROR, 0},
    {"is killed by signal: Segmentation fault", NULL, KIND_CRASH, 0},
    {"is killed by signal: Aborted", NULL, KIND_ABORTED, 0},

    // Ends whose reason lies elsewhere.
    {"Signal 9 (SIGKILL)", NULL, KIND_KILLED, 0},
    {"(exitcode: -9)", NULL, KIND_KILLED, 0},
    {"exitcode  : -9 ", NULL, KIND_KILLED, 0},
    {"exitcode  : -11 ", NULL, KIND_CRASH, 0},
    {"exitcode  : -4 ", NULL, KIND_CRASH, 0},
    {"exitcode  : -8 ", NULL, KIND_CRASH, 0},
    {"exitcode  : -6 ", NULL, KIND_ABORTED, 0},
    {"exitcode  : -7 ", NULL, KIND_BUS_ERROR, 0},
    {"exitcode  : -15 ", NULL, KIND_TERMINATED, 0},
    {"exitcode  : -2 ", NULL, KIND_INTERRUPTED, 0},
    {"exitcode  : ", NULL, KIND_CHILD, 0},
    {"terminated with signal SIGKILL", NULL, KIND_KILLED, 0},
    {"terminated with signal SIGSEGV", NULL, KIND_CRASH, 0},
    {"terminated with signal SIGABRT", NULL, KIND_ABORTED, 0},
    {"terminated with signal SIGBUS", NULL, KIND_BUS_ERROR, 0},
    {"terminated with signal SIGTERM", NULL, KIND_TERMINATED, 0},
    {"terminated with exit code ", "ProcessExitedException", KIND_CHILD, 0},
    {"CalledProcessError: ", NULL, KIND_CHILD, SYMPTOM_EXCEPTION},
    {"failed (exitcode: ", "of binary", KIND_CHILD, 0},
    {"ActorDiedError", NULL, KIND_RAY_WORKER, SYMPTOM_EXCEPTION},
    {"RayActorError", NULL, KIND_RAY_WORKER, SYMPTOM_EXCEPTION},
    {"WorkerCrashedError", NULL, KIND_RAY_WORKER, SYMPTOM_EXCEPTION},
    {"KeyboardInterrupt", NULL, KIND_INTERRUPTED, SYMPTOM_EXCEPTION},
    {"got signal: 2", NULL, KIND_INTERRUPTED, 0},
    {"Received 2 death signal", NULL, KIND_INTERRUPTED, 0},
    {"Signals.SIGINT death signal", NULL, KIND_INTERRUPTED, 0},
    {"<Signals.SIGINT: 2>", NULL, KIND_INTERRUPTED, 0},
    {"closing signal SIGINT", NULL, KIND_INTERRUPTED, 0},
    {"return code = -9", NULL, KIND_KILLED, 0},
    {"<Signals.SIGKILL: 9>", NULL, KIND_KILLED, 0},
    {"killed by signal: Killed", NULL, KIND_KILLED, 0},
    {"exit code 137", NULL, KIND_KILLED, 0},
    {"exited with code 137", NULL, KIND_KILLED, 0},
    {" Killed      ", NULL, KIND_KILLED, 0},
    {"\nKilled\n", NULL, KIND_KILLED, 0},
    {"\nKilled\r", NULL, KIND_KILLED, 0},
    {"exited on signal 9 ", "rank", KIND_KILLED, 0}, // mpirun's
    {"exited on signal 11 ", "rank", KIND_CRASH, 0},
    {"exited on signal 6 ", "rank", KIND_ABORTED, 0},
    {"exited on signal 7 ", "rank", KIND_BUS_ERROR, 0},
    {"KILLED BY SIGNAL: 9 ", NULL, KIND_KILLED, 0}, // Intel's
    {"KILLED BY SIGNAL: 11 ", NULL, KIND_CRASH, 0},
    {" Aborted      ", NULL, KIND_ABORTED, 0},
    {" Terminated      ", NULL, KIND_TERMINATED, 0},
    {"Caught signal 7 (Bus error", NULL, KIND_BUS_ERROR, 0}, // UCX's
    {"Bus error (core dumped)", NULL, KIND_BUS_ERROR, 0},
    {" Bus error      ", NULL, KIND_BUS_ERROR, 0},
    {"Illegal instruction", "core dumped", KIND_CRASH, 0},
    {"Floating point exception", "core dumped", KIND_CRASH, 0},
    {"Windows fatal exception: ", NULL, KIND_CRASH, 0},
    {"exits with return code = ", NULL, KIND_CHILD, 0}, // DeepSpeed's
    {": Killed", "srun: error", KIND_KILLED, 0},
    {": Aborted", "srun: error", KIND_ABORTED, 0},
    {": Bus error", "srun: error", KIND_BUS_ERROR, 0},
    {": Exited with exit code", "srun: error", KIND_CHILD, 0},
    {"Exit Code:    137", NULL, KIND_KILLED, 0},
    {"exitCode: 137", NULL, KIND_KILLED, 0},
    {"exit status 137", NULL, KIND_KILLED, 0},
    {"Exit code: -9", NULL, KIND_KILLED, 0},
    {"terminate called ", NULL, KIND_ABORTED, 0},
    {"double free or corruption", NULL, KIND_ABORTED, 0},
    {"free(): invalid ", NULL, KIND_ABORTED, 0},
    {"malloc(): ", NULL, KIND_ABORTED, 0},
    {"munmap_chunk(): invalid", NULL, KIND_ABORTED, 0},
    {"*** SIGABRT received at", NULL, KIND_ABORTED, 0},
    {"*** SIGSEGV received at", NULL, KIND_CRASH, 0},
    {"*** SIGBUS received at", NULL, KIND_BUS_ERROR, 0},
    {"*** SIGTERM received at", NULL, KIND_TERMINATED, 0},
    {"Engine core initialization failed", NULL, KIND_CHILD, 0},
    {"Received sigquit from a child process", NULL, KIND_CHILD, 0},
    {" scheduler is dead", NULL, KIND_CHILD, 0},
    {"actor is dead because its worker process has died", NULL, KIND_RAY_WORKER, 0},
    {"worker died or was killed while executing", NULL, KIND_RAY_WORKER, 0},
    {"Signal 11 (SIGSEGV)", NULL, KIND_CRASH, 0},
    {"(exitcode: -11)", NULL, KIND_CRASH, 0},
    {"return code = -11", NULL, KIND_CRASH, 0},
    {"return code = -6", NULL, KIND_ABORTED, 0},
    {"return code = -7", NULL, KIND_BUS_ERROR, 0},
    {"<Signals.SIGSEGV: 11>", NULL, KIND_CRASH, 0},
    {"Segmentation fault", NULL, KIND_CRASH, 0},
    {"Fatal Python error: Bus error", NULL, KIND_BUS_ERROR, 0},
    {"Fatal Python error: Aborted", NULL, KIND_ABORTED, 0},
    {"Fatal Python error: ", NULL, KIND_CRASH, 0},
    {"Signal 6 (SIGABRT)", NULL, KIND_ABORTED, 0},
    {"(exitcode: -6)", NULL, KIND_ABORTED, 0},
    {"<Signals.SIGABRT: 6>", NULL, KIND_ABORTED, 0},
    {"\nAborted (core dumped)", NULL, KIND_ABORTED, 0},
    {"signal 11: SIGSEGV", NULL, KIND_CRASH, 0},
    {"Signal 7 (SIGBUS)", NULL, KIND_BUS_ERROR, 0},
    {"(exitcode: -7)", NULL, KIND_BUS_ERROR, 0},
    {"Signal 15 (SIGTERM)", NULL, KIND_TERMINATED, 0},
    {"got signal: 15", NULL, KIND_TERMINATED, 0},
    {"got signal: 1", NULL, KIND_HANGUP, 0},
    {"Signals.SIGHUP death signal", NULL, KIND_HANGUP, 0},
    {"Signals.SIGTERM death signal", NULL, KIND_TERMINATED, 0},
    {"Received 15 death signal", NULL, KIND_TERMINATED, 0},
    {"(exitcode: -15)", NULL, KIND_TERMINATED, 0},
    {"closing signal SIGTERM", NULL, KIND_TERMINATED, 0},
    {"Received 1 death signal", NULL, KIND_HANGUP, 0},
    {"DUE TO TIME LIMIT", NULL, KIND_TIME_LIMIT, 0},
    {"TERM_RUNLIMIT: job killed", NULL, KIND_TIME_LIMIT, 0},
    {"PBS: job killed: walltime", NULL, KIND_TIME_LIMIT, 0},
    {": error: Node failure on ", NULL, KIND_CANCELLED, 0},
    {"DUE TO PREEMPTION", NULL, KIND_CANCELLED, 0},
    {"DUE TO NODE FAILURE", NULL, KIND_CANCELLED, 0},
    {" CANCELLED AT ", "slurmstepd", KIND_TERMINATED, 0},

    // The disk.
    {"No space left on device", NULL, KIND_DISK, 0},
    {"low on resource: ephemeral-storage", NULL, KIND_DISK, 0},
    {"ephemeral local storage usage exceeds", NULL, KIND_DISK, 0},
    {"Disk quota exceeded", NULL, KIND_DISK, 0},
    {"PytorchStreamWriter failed writing file", NULL, KIND_DISK, 0},

    // Collectives and the network.
    {"Watchdog caught collective operation timeout", NULL, KIND_COLLECTIVE_TIMEOUT, 0},
    {"Some NCCL operations have failed or timed out", NULL, KIND_COLLECTIVE_TIMEOUT, 0},
    {"Timed out waiting ", "for recv operation to complete", KIND_COLLECTIVE_TIMEOUT, 0},
    {"Heartbeat monitor timed out", NULL, KIND_COLLECTIVE_TIMEOUT, 0},
    {"watchdog got stuck for ", NULL, KIND_COLLECTIVE_TIMEOUT, 0},
    {"wait timeout after ", "DistStoreError", KIND_COLLECTIVE_TIMEOUT, 0},
    {"Socket Timeout", "Error: Socket Timeout", KIND_COLLECTIVE_TIMEOUT, 0},
    {"failed to pass monitoredBarrier", NULL, KIND_COLLECTIVE_TIMEOUT, 0},
    {"dump signal from another rank", NULL, KIND_PEER_LOST, 0},
    {"NCCL error in: ", NULL, KIND_NCCL_ERROR, 0},
    {"NCCL error: unhandled", NULL, KIND_NCCL_ERROR, 0},
    {"Got completion from peer", "vendor err", KIND_NCCL_ERROR, 0},
    {"ncclSystemError: ", NULL, KIND_NCCL_ERROR, 0},
    {"ncclInternalError: ", NULL, KIND_NCCL_ERROR, 0},
    {"ncclInvalidUsage: ", NULL, KIND_NCCL_ERROR, 0},
    {"ncclUnhandledCudaError: ", NULL, KIND_NCCL_ERROR, 0},
    {"ncclRemoteError: ", NULL, KIND_PEER_LOST, 0},
    {"Connection closed by remote peer", NULL, KIND_PEER_LOST, 0},
    {"Connection closed by peer", NULL, KIND_PEER_LOST, 0},
    {"Connection reset by peer", "NCCL", KIND_PEER_LOST, 0},
    {"Connection reset by peer", "gloo", KIND_PEER_LOST, 0},
    {"Connection reset by peer", "TCPStore", KIND_PEER_LOST, 0},
    {"Connection reset by peer", "SocketImpl", KIND_PEER_LOST, 0},
    {"Connection reset by peer", "DistNetworkError", KIND_PEER_LOST, 0},
    {"Connection reset by peer", "RuntimeError: Connection reset", KIND_PEER_LOST, 0}, // c10d's
    {"remote process exited or there was a network error", NULL, KIND_PEER_LOST, 0},
    {"failed to recv, got 0 bytes", NULL, KIND_PEER_LOST, 0},
    {"sendBytes failed on SocketImpl", NULL, KIND_PEER_LOST, 0},
    {"recvValue failed", NULL, KIND_PEER_LOST, 0},
    {"failed to listen on any local network address", NULL, KIND_RENDEZVOUS, 0},
    {"EADDRINUSE", NULL, KIND_RENDEZVOUS, 0},
    {"Timed out after ", "waiting for clients", KIND_RENDEZVOUS, 0},
    {"RendezvousTimeoutError", NULL, KIND_RENDEZVOUS, 0},
    {"RendezvousConnectionError", NULL, KIND_RENDEZVOUS, 0},
    {"client socket has timed out", NULL, KIND_RENDEZVOUS, 0},
    {"client socket has failed to connect to any", NULL, KIND_RENDEZVOUS, 0},

    // CUDA.
    {"illegal memory access was encountered", NULL, KIND_CUDA_FAULT, 0},
    {"device-side assert triggered", NULL, KIND_CUDA_FAULT, 0},
    {"misaligned address", "CUDA", KIND_CUDA_FAULT, 0},
    {"unspecified launch failure", NULL, KIND_CUDA_FAULT, 0},
    {"Memory access fault by GPU", NULL, KIND_CUDA_FAULT, 0},
    {"CUBLAS_STATUS_EXECUTION_FAILED", NULL, KIND_CUDA_FAULT, 0},
    {"Assertion `", "thread: [", KIND_CUDA_FAULT, 0},
    {"CUDA error: an illegal instruction", NULL, KIND_CUDA_FAULT, 0},
    {"the launch timed out and was terminated", NULL, KIND_CUDA_FAULT, 0},
    {"over nvlink or a hardware error", NULL, KIND_CUDA_HARDWARE, 0},
    {"uncorrectable ECC error", NULL, KIND_CUDA_HARDWARE, 0},
    {"uncorrectable NVLink error", NULL, KIND_CUDA_HARDWARE, 0},
    {"GPU has fallen off the bus", NULL, KIND_CUDA_HARDWARE, 0},
    {"Unable to determine the device handle for GPU", NULL, KIND_CUDA_HARDWARE, 0},
    {"fallen off the bus", "NVRM", KIND_CUDA_HARDWARE, 0},
    {"NVRM: Xid", ": 48,", KIND_CUDA_HARDWARE, 0}, // NVIDIA's list of Xid errors
    {"NVRM: Xid", ": 74,", KIND_CUDA_HARDWARE, 0},
    {"NVRM: Xid", ": 79,", KIND_CUDA_HARDWARE, 0},
    {"NVRM: Xid", ": 94,", KIND_CUDA_HARDWARE, 0},
    {"NVRM: Xid", ": 95,", KIND_CUDA_HARDWARE, 0},
    {"NVRM: Xid", ": 119,", KIND_CUDA_HARDWARE, 0},
    {"NVRM: Xid", ": 120,", KIND_CUDA_HARDWARE, 0},
    {"NVRM: Xid", ": 13,", KIND_CUDA_FAULT, 0},
    {"NVRM: Xid", ": 31,", KIND_CUDA_FAULT, 0},
    {"No CUDA GPUs are available", NULL, KIND_CUDA_SETUP, 0},
    {"DeferredCudaCallError", NULL, KIND_CUDA_SETUP, SYMPTOM_EXCEPTION},
    {"hipErrorNoBinaryForGpu", NULL, KIND_CUDA_SETUP, 0},
    {"HIP error: invalid device function", NULL, KIND_CUDA_SETUP, 0},
    {"Unexpected error from cudaGetDeviceCount", NULL, KIND_CUDA_SETUP, 0},
    {"unsupported display driver / cuda driver", NULL, KIND_CUDA_SETUP, 0},
    {"is not compatible with the current PyTorch", NULL, KIND_CUDA_SETUP, 0},
    {"forward compatibility was attempted", NULL, KIND_CUDA_SETUP, 0},
    {"CUDA error: system not yet initialized", NULL, KIND_CUDA_SETUP, 0},
    {"Driver/library version mismatch", NULL, KIND_CUDA_SETUP, 0},
    {"CUDA unknown error - this may be due to", NULL, KIND_CUDA_SETUP, 0},
    {"Duplicate GPU detected", NULL, KIND_CUDA_SETUP, 0},
    {"no kernel image is available", NULL, KIND_CUDA_SETUP, 0},
    {"invalid device ordinal", NULL, KIND_CUDA_SETUP, 0},
    {"is/are busy or unavailable", "CUDA", KIND_CUDA_SETUP, 0},
    {"no CUDA-capable device is detected", NULL, KIND_CUDA_SETUP, 0},
    {"CUDA driver version is insufficient", NULL, KIND_CUDA_SETUP, 0},
    {"The NVIDIA driver on your system is too old", NULL, KIND_CUDA_SETUP, 0},
    {"Found no NVIDIA driver on your system", NULL, KIND_CUDA_SETUP, 0},
    {"Torch not compiled with CUDA enabled", NULL, KIND_CUDA_SETUP, 0},

    // Configurations.
    {"ModuleNotFoundError: ", NULL, KIND_MISSING_MODULE, SYMPTOM_EXCEPTION},
    {"ImportError: ", NULL, KIND_MISSING_MODULE, SYMPTOM_EXCEPTION},
    {"' not found (required by", NULL, KIND_MISSING_MODULE, 0},
    {"is not a valid model identifier", NULL, KIND_MODEL_MISSING, 0},
    {"does not appear to have a file named", NULL, KIND_MODEL_MISSING, 0},
    {"RepositoryNotFoundError", NULL, KIND_MODEL_MISSING, 0},
    {"GatedRepoError", NULL, KIND_MODEL_MISSING, 0},
    {"trying to access a gated repo", NULL, KIND_MODEL_MISSING, 0},
    {"error: unrecognized arguments", NULL, KIND_ARGUMENTS, 0},
    {"error: the following arguments are required", NULL, KIND_ARGUMENTS, 0},
    {": invalid choice: ", "error: argument", KIND_ARGUMENTS, 0},
    {"are not used by the HfArgumentParser", NULL, KIND_ARGUMENTS, 0},
    {"got an unexpected keyword argument", "TypeError", KIND_ARGUMENTS, 0},
    {"ConfigAttributeError", NULL, KIND_ARGUMENTS, SYMPTOM_EXCEPTION},
    {"ConfigKeyError", NULL, KIND_ARGUMENTS, SYMPTOM_EXCEPTION},
    {"ConfigCompositionException", NULL, KIND_ARGUMENTS, SYMPTOM_EXCEPTION},
    {"can't start new thread", NULL, KIND_RESOURCE_LIMIT, 0},
    {"Resource temporarily unavailable", "thread", KIND_RESOURCE_LIMIT, 0},
    {"Resource temporarily unavailable", "fork", KIND_RESOURCE_LIMIT, 0},
    {"Too many open files", NULL, KIND_RESOURCE_LIMIT, 0},
    {"received 0 items of ancdata", NULL, KIND_RESOURCE_LIMIT, 0},
    {"loss scale already at minimum", NULL, KIND_DIVERGED, 0},
    {"Minimum loss scale reached", NULL, KIND_DIVERGED, 0},
    {"found NaN in local ", NULL, KIND_DIVERGED, 0},
    {"found Inf in local ", NULL, KIND_DIVERGED, 0},
    {"Unexpected result nan", NULL, KIND_DIVERGED, 0},

    // Context and sequence parallelism, as accelerate 1.15, transformers 5.17, TRL 1.16 and torch
    // 2.11 refuse them.
    {"We need a `fsdp_plugin` to use context parallelism", NULL, KIND_CONTEXT_PARALLEL, 0,
     "shard the model by FSDP2 beside it: distributed_type: FSDP with fsdp_version: 2"},
    {" requires FSDP2, but the provided", NULL, KIND_CONTEXT_PARALLEL, 0, "fsdp_version: 2"},
    {"Context parallelism is supported only with SDPA attention", NULL, KIND_CONTEXT_PARALLEL, 0,
     "attn_implementation: sdpa"},
    {"CP only supports flash attention and memory efficient attention", NULL, KIND_CONTEXT_PARALLEL,
     0, "bf16 or fp16, and sdpa's flash or efficient kernel (no SDPBackend.MATH, no mask)"},
    {"Context parallelism only supports causal attention masks", NULL, KIND_CONTEXT_PARALLEL, 0,
     "batches without an attention_mask, or with one that masks nothing but what lies ahead"},
    {"Load balancing requires `is_causal=True`", NULL, KIND_CONTEXT_PARALLEL, 0,
     "causal attention without a mask: is_causal=True"},
    {"attn_bias is not supported yet", "NotImplementedError", KIND_CONTEXT_PARALLEL, 0,
     "causal attention without a mask: is_causal=True"},
    {"is_causal requires the same query and context sequence lengths", NULL, KIND_CONTEXT_PARALLEL,
     0, "no key-value cache while training: use_cache: false"},
    {"Context parallelism does not support attention layers of type", NULL, KIND_CONTEXT_PARALLEL,
     0, "a model whose layers all attend to everything before (no sliding window, no chunks)"},
    {"Sequence parallelism does not support attention layers of type", NULL, KIND_CONTEXT_PARALLEL,
     0, "a model without recurrent layers"},
    {"Packing is not compatible with context parallelism", NULL, KIND_CONTEXT_PARALLEL, 0,
     "packing: false and eval_packing: false"},
    {"does not support sequence-dim parallelism", NULL, KIND_CONTEXT_PARALLEL, 0,
     "cp_size: 1 and sp_size: 1: this trainer has neither (SFTTrainer has)"},
    {"Sequence Parallelism (SP) are mutually exclusive", NULL, KIND_CONTEXT_PARALLEL, 0,
     "one of them: cp_size: 1 or sp_size: 1"},
    {"cannot be used with pure data parallelism", NULL, KIND_CONTEXT_PARALLEL, 0,
     "dp_replicate_size: 1, or dp_shard_size above 1"},
    {"cannot import name 'ReplicateParallel'", NULL, KIND_CONFIGURATION, 0,
     "tensor parallelism alone (tp_size of all GPUs), or FSDP2 without it: Accelerate 1.15 asks "
     "transformers for what it has not had since 5.2"},
    {") * fsdp_size (", NULL, KIND_CONFIGURATION, 0, "tp_size of all processes"},
    {"must be divisible by the tensor parallel size", NULL, KIND_CONFIGURATION, 0,
     "a tp_size that divides it"},
    {"ParallelismConfig total_size (", NULL, KIND_CONTEXT_PARALLEL, 0,
     "dp_replicate_size x dp_shard_size x tp_size x cp_size x sp_size = num_processes"},
    {"ParallelismConfig is only compatible", NULL, KIND_CONTEXT_PARALLEL, 0,
     "FSDP2 for cp_size, DeepSpeed for sp_size"},
    {"FSDP2-based Context parallelism is only available", NULL, KIND_CONTEXT_PARALLEL, 0,
     "the torch that the message asks for, or a newer one"},
    {"ParallelismConfig requires accelerate", NULL, KIND_CONTEXT_PARALLEL, 0,
     "the accelerate that the message asks for, or a newer one"},
    {"cp_backend must be one of", NULL, KIND_CONTEXT_PARALLEL, 0, "cp_backend: torch"},
    {"sp_backend must be one of", NULL, KIND_CONTEXT_PARALLEL, 0, "sp_backend: deepspeed"},
    {"you need to configure sp_backend=", NULL, KIND_CONTEXT_PARALLEL, 0, "sp_backend: deepspeed"},
    {"Invalid cp_comm_strategy: ", NULL, KIND_CONTEXT_PARALLEL, 0,
     "cp_comm_strategy: allgather or alltoall"},
    {"for kv shards rotation", "Context Parallel does not support", KIND_CONTEXT_PARALLEL, 0,
     "cp_comm_strategy: allgather or alltoall"},
    {"Invalid sp_attn_implementation: ", NULL, KIND_CONTEXT_PARALLEL, 0,
     "sp_attn_implementation: sdpa, flash_attention_2 or flash_attention_3"},
    {"must be provided either through the constructor", "sp_seq_length", KIND_CONTEXT_PARALLEL, 0,
     "sp_seq_length_is_variable: true, or sp_seq_length"},
    {"assert seq_length % (world_size * 2)", NULL, KIND_CONTEXT_PARALLEL, 0,
     "lengths that are multiples of 2 x cp_size: pad_to_multiple_of"},
    {"is not divisible by CP mesh world size", NULL, KIND_CONTEXT_PARALLEL, 0,
     "lengths that are multiples of cp_size x the BLOCK_SIZE that the message gives"},
    {"must have the same number of elements as `buffers`", NULL, KIND_CONTEXT_PARALLEL, 0,
     "one entry of buffer_seq_dims for each of the buffers"},
    {"must be a subset of `buffers`", NULL, KIND_CONTEXT_PARALLEL, 0,
     "no_restore_buffers only of what is among the buffers"},

    {"Check batch related parameters", NULL, KIND_CONFIGURATION, 0},
    {"must be divisible by", NULL, KIND_CONFIGURATION, 0},
    {"is not divisible by", NULL, KIND_CONFIGURATION, 0},
    {"does not recognize this architecture", NULL, KIND_CONFIGURATION, 0},
    {"is greater than the derived max_model_len", NULL, KIND_CONFIGURATION, 0},
    {"size mismatch for ", "copying a param", KIND_CONFIGURATION, 0},
    {"Error(s) in loading state_dict", NULL, KIND_CONFIGURATION, 0},
    {"FlashAttention2 has been toggled on, but it cannot be used", NULL, KIND_CONFIGURATION, 0},
    {"FlashAttention only support", NULL, KIND_CONFIGURATION, 0},
    {"Expected all tensors to be on the same device", NULL, KIND_CONFIGURATION, 0},

    // Services elsewhere.
    {"couldn't connect to 'http", NULL, KIND_NETWORK, 0},
    {"ConnectionError: ", NULL, KIND_NETWORK, SYMPTOM_EXCEPTION},
    {"HfHubHTTPError: ", NULL, KIND_NETWORK, SYMPTOM_EXCEPTION},
    {"LocalEntryNotFoundError: ", NULL, KIND_NETWORK, SYMPTOM_EXCEPTION},
    {"OfflineModeIsEnabled: ", NULL, KIND_NETWORK, SYMPTOM_EXCEPTION},
    {"MaxRetryError: ", NULL, KIND_NETWORK, SYMPTOM_EXCEPTION},
    {"NewConnectionError: ", NULL, KIND_NETWORK, SYMPTOM_EXCEPTION},
    {"ConnectTimeoutError: ", NULL, KIND_NETWORK, SYMPTOM_EXCEPTION},
    {"ReadTimeoutError: ", NULL, KIND_NETWORK, SYMPTOM_EXCEPTION},
    {"ProxyError: ", NULL, KIND_NETWORK, SYMPTOM_EXCEPTION},
    {"ConnectTimeout: ", NULL, KIND_NETWORK, SYMPTOM_EXCEPTION},
    {"ReadTimeout: ", NULL, KIND_NETWORK, SYMPTOM_EXCEPTION},
    {"ConnectError: ", NULL, KIND_NETWORK, SYMPTOM_EXCEPTION},
    {"HTTPError: ", NULL, KIND_NETWORK, SYMPTOM_EXCEPTION},
    {"SSLError: ", NULL, KIND_NETWORK, SYMPTOM_EXCEPTION},
    {"gaierror: ", NULL, KIND_NETWORK, SYMPTOM_EXCEPTION},
    {"wandb.errors.CommError", NULL, KIND_NETWORK, SYMPTOM_EXCEPTION},
    {"wandb.errors.errors.CommError", NULL, KIND_NETWORK, SYMPTOM_EXCEPTION},

    // What the run is at, where no traceback tells.
    {"***** Running training *****", NULL, KIND_EXCEPTION, SYMPTOM_PHASE},
    {"***** Running Evaluation *****", NULL, KIND_EXCEPTION, SYMPTOM_PHASE, NULL,
     DOCTOR_PHASE_EVALUATION},
    {"***** Running Prediction *****", NULL, KIND_EXCEPTION, SYMPTOM_PHASE, NULL,
     DOCTOR_PHASE_EVALUATION},
    {"{'eval_loss': ", NULL, KIND_EXCEPTION, SYMPTOM_PHASE},
    {"Loading checkpoint shards: 100%", NULL, KIND_EXCEPTION, SYMPTOM_PHASE},
    {"Loading checkpoint shards: ", NULL, KIND_EXCEPTION, SYMPTOM_PHASE, NULL, DOCTOR_PHASE_LOAD},
    {"Loading weights: 100%", NULL, KIND_EXCEPTION, SYMPTOM_PHASE},
    {"Loading weights: ", NULL, KIND_EXCEPTION, SYMPTOM_PHASE, NULL, DOCTOR_PHASE_LOAD},
    {"Saving model checkpoint to ", NULL, KIND_EXCEPTION, SYMPTOM_PHASE, NULL, DOCTOR_PHASE_SAVE},

    // And what transformers' Trainer prints of its settings.
    {"Instantaneous batch size per device = ", NULL, KIND_EXCEPTION, SYMPTOM_SAID, NULL,
     DOCTOR_PHASE_UNKNOWN, DOCTOR_SAID_BATCH},
    {"Gradient Accumulation steps = ", NULL, KIND_EXCEPTION, SYMPTOM_SAID, NULL,
     DOCTOR_PHASE_UNKNOWN, DOCTOR_SAID_ACCUMULATION},
    {"Total train batch size (w. parallel, distributed & accumulation) = ", NULL, KIND_EXCEPTION,
     SYMPTOM_SAID, NULL, DOCTOR_PHASE_UNKNOWN, DOCTOR_SAID_TOTAL_BATCH},
    {"  Batch size = ", NULL, KIND_EXCEPTION, SYMPTOM_SAID, NULL, DOCTOR_PHASE_EVALUATION,
     DOCTOR_SAID_EVAL_BATCH},
    {"  Num examples = ", NULL, KIND_EXCEPTION, SYMPTOM_SAID, NULL, DOCTOR_PHASE_EVALUATION,
     DOCTOR_SAID_EVAL_SIZE},

    // Any other exception.
    {"Traceback (most recent call last)", NULL, KIND_EXCEPTION, SYMPTOM_TRACEBACK},
    {"ValueError: ", NULL, KIND_EXCEPTION, SYMPTOM_EXCEPTION},
    {"TypeError: ", NULL, KIND_EXCEPTION, SYMPTOM_EXCEPTION},
    {"KeyError: ", NULL, KIND_EXCEPTION, SYMPTOM_EXCEPTION},
    {"IndexError: ", NULL, KIND_EXCEPTION, SYMPTOM_EXCEPTION},
    {"NameError: ", NULL, KIND_EXCEPTION, SYMPTOM_EXCEPTION},
    {"AttributeError: ", NULL, KIND_EXCEPTION, SYMPTOM_EXCEPTION},
    {"RuntimeError: ", NULL, KIND_EXCEPTION, SYMPTOM_EXCEPTION},
    {"AssertionError", NULL, KIND_EXCEPTION, SYMPTOM_EXCEPTION},
    {"NotImplementedError", NULL, KIND_EXCEPTION, SYMPTOM_EXCEPTION},
    {"FileNotFoundError: ", NULL, KIND_EXCEPTION, SYMPTOM_EXCEPTION},
    {"PermissionError: ", NULL, KIND_EXCEPTION, SYMPTOM_EXCEPTION},
    {"JSONDecodeError: ", NULL, KIND_EXCEPTION, SYMPTOM_EXCEPTION},
    {"ValidationError: ", NULL, KIND_EXCEPTION, SYMPTOM_EXCEPTION},
    {"ZeroDivisionError: ", NULL, KIND_EXCEPTION, SYMPTOM_EXCEPTION},
    {"SyntaxError: ", NULL, KIND_EXCEPTION, SYMPTOM_EXCEPTION},
    {"OSError: ", NULL, KIND_EXCEPTION, SYMPTOM_EXCEPTION},
};

const ptrdiff_t symptom_count = COUNT_OF(symptoms);

const struct symptom symptom_exception = {NULL, NULL, KIND_EXCEPTION, 0};

ptrdiff_t text_find(struct str text, struct str part, ptrdiff_t from)
{
    for (ptrdiff_t i = from; i + part.n <= text.n; i++) {
        const char *found = memchr(text.p + i, part.p[0], (size_t)(text.n - part.n - i + 1));
        if (!found)
            return -1;
        i = found - text.p;
        if (memcmp(found, part.p, (size_t)part.n) == 0)
            return i;
    }
    return -1;
}

bool text_has(struct str text, const char *part)
{
    return text_find(text, str_from(part), 0) >= 0;
}

static bool is_name(char c)
{
    return char_is_digit(c) || (char_lower(c) >= 'a' && char_lower(c) <= 'z') || c == '_' ||
           c == '.';
}

// Where Python prints an exception its name starts a line, after whatever prefix the logger adds.
static bool stands_as_exception(const struct passage *p)
{
    enum { NAME_MOST_BYTES = 120 };
    ptrdiff_t start = p->anchor;
    ptrdiff_t earliest = start > NAME_MOST_BYTES ? start - NAME_MOST_BYTES : 0;
    while (start > earliest && is_name(p->line.p[start - 1]))
        start--;
    return start == 0 || p->line.p[start - 1] == ' ' || p->line.p[start - 1] == ']';
}

static bool holds_all(struct str line, const char *needed)
{
    struct words needs = words_of(needed, '|');
    while (words_next(&needs))
        if (text_find(line, needs.word, 0) < 0)
            return false;
    return true;
}

_Static_assert(COUNT_OF(symptoms) <= MOST_SYMPTOMS, "a reading has a bit for each");

static bool meets(ptrdiff_t symptom, const struct passage *p, struct reading *r)
{
    const struct symptom *s = &symptoms[symptom];
    uint64_t bit = UINT64_C(1) << symptom % 64;
    uint64_t *known = &r->needs_known[symptom / 64], *met = &r->needs_met[symptom / 64];
    if (s->needs && !(*known & bit)) {
        *known |= bit;
        *met |= holds_all(p->line, s->needs) ? bit : 0;
    }
    if (s->needs && !(*met & bit))
        return false;
    return !(s->flags & SYMPTOM_EXCEPTION) || stands_as_exception(p);
}

const struct symptom *symptom_at(const struct scan *s, const struct passage *p, struct reading *r)
{
    struct str rest = str_slice(p->line, p->anchor, p->line.n);
    if (passage_is_silenced(p, r))
        return NULL;
    for (ptrdiff_t i = scan_symptom(s, rest, -1); i >= 0; i = scan_symptom(s, rest, i))
        if (meets(i, p, r))
            return passage_is_quoted(p, r) ? NULL : &symptoms[i];
    return NULL;
}
