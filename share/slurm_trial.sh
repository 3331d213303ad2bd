#!/bin/sh
# slurm_trial.sh SCRIPT OUTPUT GPUS: runs SCRIPT under Slurm, shows what it writes, ends with its status. Inside an
# allocation (SLURM_JOB_ID) it is a step of that, elsewhere a job of its own. Job or step is cancelled when this is
# asked to end. Lines of JSON say when it waits and when it runs.
script=$1 output=$2 gpus=$3
poll=${FATHOM_SLURM_POLL-5}
patience=60 # questions without an answer before the job is given up
stopped=143 # what Fathom takes for "stopped from outside"
request="--gpus=$gpus"
[ "${FATHOM_SLURM_GPUS-on}" = off ] && request=
trap '' PIPE # a reader that is gone must not keep the job from being cancelled

tell() {
    printf '{"fathom": "%s", "job": "%s", "state": "%s"}\n' "$1" "$job" "$state"
}

rest() { # a sleep that a signal ends at once
    sleep "$1" &
    wait $!
}

again() { # again TIMES COMMAND...: until it succeeds
    times=$1
    shift
    while ! "$@" >/dev/null 2>&1; do
        times=$((times - 1))
        [ "$times" -gt 0 ] || return 1
        sleep 1
    done
}

# ------------------------------------------------------------------ a step of an allocation

step_ids() {
    squeue --noheader --steps --job "$SLURM_JOB_ID" --format='%i %j' | sed -n "s/ $name\$//p"
}

cancel_step() {
    trap '' TERM INT HUP
    for id in $(step_ids 2>/dev/null); do
        again 5 scancel --signal=KILL "$id"
    done
    kill "$step" 2>/dev/null
    wait "$step"
    exit "$stopped"
}

if [ -n "$SLURM_JOB_ID" ] && [ "${FATHOM_SLURM_STEPS-on}" != off ]; then
    name=fathom-$$ step=
    trap cancel_step TERM INT HUP
    # Our own step, if we run in one, holds what this one is to have.
    (trap - PIPE TERM INT HUP; exec srun --overlap --nodes=1 --ntasks=1 --job-name="$name" $request sh "$script") &
    step=$!
    wait "$step"
    exit
fi

# ------------------------------------------------------------------ a job of its own

job='' state=''

# sbatch reads %j and the like in the name of the output, where %% is the sign itself, and drops backslashes.
case $output in
*\\*)
    echo "slurm: $output: no output can be in a folder with a backslash in its name" >&2
    exit 126 ;;
esac
pattern=$(printf '%s' "$output" | sed 's/%/%%/g')

# sbatch may have made a job although it was interrupted, so it is not: signals wait until it has ended.
submit() {
    said=$(trap '' TERM INT HUP
           exec sbatch --parsable --job-name=fathom --output="$pattern" $request "$script" 2>"$output.sbatch")
    status=$?
    cat "$output.sbatch" >&2
    grep -q -i -e 'unable to contact' -e 'timed out' -e 'temporarily' "$output.sbatch" && passing=yes
    rm -f "$output.sbatch"
    job=${said%%;*}
    return "$status"
}

cancel() {
    trap '' TERM INT HUP
    [ -n "$job" ] && again 5 scancel "$job"
    exit "$stopped"
}

# What was written since; opening the file anew is what makes NFS look.
shown=0
show() {
    size=$(wc -c <"$output")
    [ "$size" -gt "$shown" ] || return 1
    tail -c "+$((shown + 1))" "$output" | head -c "$((size - shown))"
    shown=$size
}

# "STATE|EXIT:SIGNAL" as far as anybody knows: the queue, which also remembers jobs for some minutes, the
# controller, accounting, which may lag behind.
ask() {
    squeue --noheader --states=all --job "$job" --format='%T|' 2>/dev/null | head -n 1
    scontrol show job "$job" 2>/dev/null | tr ' ' '\n' |
        sed -n -e 's/^JobState=//p' -e 's/^ExitCode=//p' | paste -s -d '|' -
    sacct --noheader --parsable2 --allocations --jobs "$job" --format=State,ExitCode 2>/dev/null | head -n 1
}

is_over() {
    case $1 in
    COMPLETED | FAILED | TIMEOUT | CANCELLED* | NODE_FAIL | BOOT_FAIL | PREEMPTED | OUT_OF_MEMORY | DEADLINE | REVOKED)
        return 0 ;;
    esac
    return 1
}

# Only an answer that was read counts: with its exit code where the job is over, any state where it is not.
read_state() {
    found='' code=''
    for answer in $(ask | tr ' ' '_'); do
        word=${answer%%|*} number=${answer#*|}
        [ -n "$word" ] || continue
        [ -n "$found" ] || found=$word
        is_over "$found" || break
        if is_over "$word" && [ -n "$number" ]; then
            found=$word code=$number
            break
        fi
    done
    [ -n "$found" ]
}

: >"$output"
passing=no
trap 'asked=yes' TERM INT HUP
asked=no
if ! submit; then
    [ "$passing" = yes ] && exit "$stopped"
    exit 126
fi
trap cancel TERM INT HUP
[ "$asked" = yes ] && cancel

unanswered=0
while :; do
    if ! read_state; then
        unanswered=$((unanswered + 1))
        if [ "$unanswered" -ge "$patience" ]; then
            echo "slurm: nobody answers about job $job any more" >&2
            cancel
        fi
    elif is_over "$found" && { [ -n "$code" ] || [ "$unanswered" -ge 5 ]; }; then
        state=$found
        break
    elif is_over "$found"; then
        unanswered=$((unanswered + 1)) # the state is known, the exit code not yet
    else
        unanswered=0
        if [ "$found" != "$state" ]; then
            state=$found
            case $state in
            RUNNING | COMPLETING | STAGE_OUT | SIGNALING) tell running ;;
            *) tell queued ;;
            esac
        fi
    fi
    show
    rest "$poll"
done

# Output comes late over a network: the end is when nothing has come for three looks.
tell running
still=0
while [ "$still" -lt 3 ]; do
    show && still=0 || still=$((still + 1))
    rest "${FATHOM_SLURM_POLL-1}"
done

status=${code%%:*} signal=${code##*:}
case $state in
COMPLETED) exit 0 ;;
OUT_OF_MEMORY) echo "slurmstepd: error: Detected 1 oom_kill event in job $job (OUT_OF_MEMORY)"; exit 137 ;;
TIMEOUT | DEADLINE) echo "slurm: job $job CANCELLED DUE TO TIME LIMIT ($state)"; exit "$stopped" ;;
NODE_FAIL | BOOT_FAIL) echo "slurm: job $job CANCELLED DUE TO NODE FAILURE ($state)"; exit "$stopped" ;;
PREEMPTED) echo "slurm: job $job CANCELLED DUE TO PREEMPTION ($state)"; exit "$stopped" ;;
CANCELLED* | REVOKED) echo "slurm: job $job was cancelled ($state)"; exit "$stopped" ;;
esac
[ "${signal:-0}" != 0 ] && exit $((128 + signal))
[ "${status:-0}" != 0 ] && exit "$status"
exit 1
