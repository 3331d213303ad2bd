#!/bin/sh
# slurm_trial.sh SCRIPT OUTPUT GPUS: submits SCRIPT, shows what it writes, ends with its status. The job
# is cancelled when this is asked to end.
script=$1 output=$2 gpus=$3
: >"$output"
request="--gpus=$gpus"
[ "${FATHOM_SLURM_GPUS-on}" = off ] && request=
job=$(sbatch --parsable --job-name=fathom --output="$output" $request "$script") || exit 1
job=${job%%;*}
cancel() {
    scancel "$job"
    exit 143
}
trap cancel TERM INT HUP
tail -n +1 -f "$output" &
follower=$!
while state=$(squeue --noheader --job "$job" --format=%T 2>/dev/null) && [ -n "$state" ]; do
    sleep "${FATHOM_SLURM_POLL-5}" &
    wait $!
done
sleep 1
kill "$follower" 2>/dev/null
# "STATE|EXIT:SIGNAL" of the job itself; without accounting, what the controller still remembers.
end=$(sacct --noheader --parsable2 --allocations --jobs "$job" --format=State,ExitCode 2>/dev/null | head -n 1)
if [ -z "$end" ]; then
    end=$(scontrol show job "$job" 2>/dev/null | tr ' ' '\n' |
          sed -n -e 's/^JobState=//p' -e 's/^ExitCode=//p' | paste -s -d '|')
fi
state=${end%%|*} code=${end##*|}
echo "slurm: job $job: $state, exit code $code"
case $state in
COMPLETED) exit 0 ;;
OUT_OF_MEMORY) exit 137 ;;
esac
status=${code%%:*} signal=${code##*:}
[ "$signal" != 0 ] && [ -n "$signal" ] && exit $((128 + signal))
[ "$status" != 0 ] && [ -n "$status" ] && exit "$status"
exit 1
