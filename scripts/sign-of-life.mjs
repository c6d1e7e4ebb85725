// A line every ten seconds while a step goes on that prints nothing.
import { spawn } from 'node:child_process';

/** Runs `work`, which may keep this process busy: the lines come from another one, which ends with this one. */
export function withSignOfLife(what, work) {
  const script = 'n=0; while sleep 10 && kill -0 "$PPID"; do n=$((n + 10)); echo "$0: $n s so far" >&2; done';
  const beside = spawn('sh', ['-c', script, what], { stdio: ['ignore', 'ignore', 'inherit'] });
  try {
    return work();
  } finally {
    beside.kill();
  }
}
