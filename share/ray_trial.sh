#!/bin/sh
# ray_trial.sh SCRIPT OUTPUT GPUS: submits SCRIPT to a Ray cluster (RAY_ADDRESS), shows what it writes, ends with
# its status. The job is stopped when this is asked to end. OUTPUT and GPUS are for other launchers: a job of
# Ray's asks for its own GPUs.
script=$(realpath -- "$1")
job=fathom-$(date +%s)-$$
trap '' PIPE # a reader that is gone must not keep the job from being stopped

# Nothing of this writes to the trial's output, which may have no reader any more. A job that was only being
# submitted is not known yet: it is asked for again.
stop() {
    trap '' TERM INT HUP
    kill "$submission" 2>/dev/null
    for _ in 1 2 3 4 5; do
        ray job stop "$job" >/dev/null 2>&1 </dev/null && break
        sleep 1
    done
    exit 143
}

# Ray makes one line of shell text of a job's words and quotes only spaces (2.49), so others must mean nothing there.
case $script in
*[][:cntrl:]\"\'\`\$\\\;\&\|\<\>\(\)\{\}[*?!#~^]*)
    printf "Ray would run this path as text of a shell's: %s; --log-dir names another folder\n" "$script" >&2
    exit 126 ;;
esac

submission=
trap stop TERM INT HUP
(trap - PIPE TERM INT HUP; exec ray job submit --submission-id "$job" -- sh "$script") &
submission=$!
wait "$submission"
status=$?
# One that was only lost sight of still runs.
[ "$status" = 0 ] || ray job stop "$job" >/dev/null 2>&1 </dev/null
exit "$status"
