# Sourced by deploy/quickstart and tests/run: runs long commands and reports their progress.

# say TEXT…: prints one line with the seconds since the script began.
say() { printf '[%4ds] %s\n' "$SECONDS" "$*"; }

# why_failed LOGFILE: prints the useful part of a failed command's log. Ninja lets running jobs finish after a failure, so their
# output is at the end of its log.
why_failed() {
  if grep -q '^FAILED: ' "$1"; then
    awk '/^FAILED: / { failed = 1 } failed && ++lines <= 40' "$1"
  else
    tail -n 40 "$1"
  fi | cut -c 1-400 | sed 's/^/    | /'
}

# logged TITLE LOGFILE COMMAND…: runs COMMAND with its output in LOGFILE, shows LOGFILE's last line every ten seconds, and
# why_failed's output if COMMAND fails. Returns COMMAND's status. Sets `background_pid` while it runs, for traps.
logged() {
  local title=$1 log=$2 began=$SECONDS status=0 shown=""
  shift 2
  say "$title"
  mkdir -p "$(dirname "$log")"
  "$@" >"$log" 2>&1 </dev/null &
  background_pid=$!
  local waited=0
  while kill -0 "$background_pid" 2>/dev/null; do
    sleep 0.2
    waited=$((waited + 1))
    if ((waited % 50 == 0)); then
      local line
      line=$(tail -c 400 "$log" | tr '\r' '\n' | sed '/^[[:space:]]*$/d' | tail -n 1 | cut -c 1-110)
      [[ $line == "$shown" ]] || say "    $line"
      shown=$line
    fi
  done
  wait "$background_pid" || status=$?
  background_pid=""
  if ((status != 0)); then
    say "FAILED (status $status): $title. From $log:"
    why_failed "$log"
  else
    say "    done in $((SECONDS - began)) s"
  fi
  return "$status"
}

# stop_tree PID…: terminates processes and their children with SIGTERM, and after three seconds with SIGKILL.
stop_tree() {
  local pid child all=("$@") next
  for ((next = 0; next < ${#all[@]}; next++)); do
    for child in $(cat /proc/"${all[next]}"/task/*/children 2>/dev/null); do all+=("$child"); done
  done
  kill -TERM "${all[@]}" 2>/dev/null || true
  for ((next = 0; next < 30; next++)); do
    kill -0 "${all[@]}" 2>/dev/null || return 0
    sleep 0.1
  done
  for pid in "${all[@]}"; do kill -KILL "$pid" 2>/dev/null || true; done
}
