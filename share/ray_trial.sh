#!/bin/sh
# ray_trial.sh SCRIPT OUTPUT GPUS: submits SCRIPT to a Ray cluster (RAY_ADDRESS), shows what it writes, ends with
# its status. The job is stopped when this is asked to end. OUTPUT and GPUS are for other launchers: a job of
# Ray's asks for its own GPUs.
script=$1
job=fathom-$(date +%s)-$$
stop() {
    ray job stop "$job"
    exit 143
}
trap stop TERM INT HUP
ray job submit --submission-id "$job" -- sh "$(realpath "$script")" &
wait $!
