/**
 * A shell between this program and a server: it gets its commands by a pipe, and where the pipe ends, however this
 * program did, it ends the server and removes its directory.
 */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface, type Interface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { JobtailError } from '../../src/errors.ts';

type KeeperWord = 'start' | 'stop' | 'kill';

/** `$1` is the directory, the rest starts the server. It repeats each word when that is done. */
const SCRIPT = `
directory=$1; shift
server=
end() {
  if [ -n "$server" ]; then kill "$1" "$server"; wait "$server"; fi 2>/dev/null
  server=
}
while read -r word; do
  case $word in
    start)
      : >"$directory/server.log"
      "$@" </dev/null >>"$directory/server.log" 2>&1 & server=$! ;;
    stop) end -INT ;;
    kill) end -QUIT ;;
  esac
  echo "$word"
done
end -QUIT
rm -rf "$directory"
`;

interface KeeperOptions {
  readonly directory: string;
  /** argv of the server; no shell reads it. */
  readonly command: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  /** Those of the server; left out: those of this program. */
  readonly uid?: number;
  readonly gid?: number;
}

export class Keeper {
  readonly #shell: ChildProcessByStdio<Writable, Readable, null>;
  readonly #answers: Interface;
  readonly #ended: Promise<false>;

  constructor({ directory, command, ...rest }: KeeperOptions) {
    // Detached: Ctrl-C reaches this program alone.
    this.#shell = spawn('/bin/sh', ['-c', SCRIPT, 'sh', directory, ...command], {
      ...rest,
      cwd: '/',
      detached: true,
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    // The responses report the result.
    this.#shell.on('error', () => {});
    this.#shell.stdin.on('error', () => {});
    this.#answers = createInterface(this.#shell.stdout);
    this.#ended = once(this.#answers, 'close').then(() => false);
  }

  /** Resolves when it is done; one word at a time. */
  async report(word: KeeperWord): Promise<void> {
    const over = new AbortController();
    this.#shell.stdin.write(`${word}\n`);
    const done = once(this.#answers, 'line', over).then(() => true);
    const isDone = await Promise.race([done, this.#ended]).finally(() => over.abort());
    if (!isDone) throw new JobtailError('local-io', 'the shell that keeps a server has ended');
  }

  /** Ends the server and removes its directory; may be called again. */
  async end(): Promise<void> {
    this.#shell.stdin.end();
    await this.#ended;
  }
}
