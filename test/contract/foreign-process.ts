/** A server that is not ours, run for the time of a test file. */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';

/** Ends the program when the guard's own input ends: also when the test run is killed, so that nothing stays behind. */
const GUARD = 'exec 2>&1; "$@" </dev/null & child=$!; cat >/dev/null; kill -KILL "$child"; wait "$child"';

/** Far beyond what starting takes, but less than what a hook may take: then the error shows the output. */
const START_LIMIT_MS = 25_000;

export class ForeignProcess {
  readonly #child: ChildProcessWithoutNullStreams;
  #output = '';

  constructor(argv: readonly string[], env: Readonly<Record<string, string>>) {
    this.#child = spawn('sh', ['-c', GUARD, 'sh', ...argv], { env: { ...process.env, ...env } });
    this.#child.stdout.setEncoding('utf8').on('data', (text: string) => {
      this.#output += text;
    });
  }

  /** Everything it wrote so far. */
  get output(): string {
    return this.#output;
  }

  /** What `pattern` finds in its output, as soon as it stands there. */
  async said(pattern: RegExp): Promise<RegExpExecArray> {
    const signal = AbortSignal.timeout(START_LIMIT_MS);
    for (;;) {
      const found = pattern.exec(this.#output);
      if (found !== null) return found;
      await once(this.#child.stdout, 'data', { signal }).catch(async () => {
        await this.close();
        throw new Error(`it said nothing that fits ${pattern}: ${this.#output}`);
      });
    }
  }

  async close(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const closed = once(this.#child, 'close');
    this.#child.stdin.end();
    await closed;
  }
}
