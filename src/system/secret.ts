/** Reads a configured secret each time that it is needed, and stores it nowhere. */
import { constants } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { type SecretSource, secretFileOf } from '../auth.ts';
import { asJobtailError, type ErrorCode, JobtailError } from '../errors.ts';
import { safeText } from '../redact.ts';
import { EXACT, stampOf } from './files.ts';
import { keptFile } from './kept-files.ts';
import { ownUserName } from './owners.ts';
import { environmentWith, MAX_STDERR, OverLimit, printedBy } from './program.ts';

const MAX_BYTES = 64 * 1024;
/** Shorter arguments are options such as `-p`; hiding them would make messages unreadable. */
const MIN_HIDDEN_ARGUMENT = 4;
/** A shorter part of a secret at the cut of a text is not recognized. */
const CUT_CHARACTERS = 8;

export interface SecretOptions {
  readonly source: SecretSource;
  readonly name: string;
  /** Of its errors; that of a sign-in if omitted. */
  readonly code?: ErrorCode;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly onWarning?: ((message: string) => void) | undefined;
  /** A key of several lines; else the secret is one line. */
  readonly isPem?: boolean | undefined;
}

export class Secret {
  readonly #options: SecretOptions;
  #fingerprint = '';
  #hasWarned = false;

  constructor(options: SecretOptions) {
    this.#options = options;
  }

  get place(): string {
    return placeOf(this.#options);
  }

  /** Without the newline at its end. @throws JobtailError `code`, aborted; never with a part of it */
  async read(signal: AbortSignal): Promise<string> {
    const { source } = this.#options;
    if (source.kind === 'command') return this.#textOf(await printedSecret(source, signal));
    const path = this.#path();
    // Before the read, so that a change in between is detected.
    this.#fingerprint = await fingerprintOf(path);
    return this.#textOf(await this.#readFile(path));
  }

  /** Whether the file differs from the one that was read last; unknown for a program. */
  async hasChanged(): Promise<boolean> {
    if (this.#options.source.kind === 'command') return false;
    return (await fingerprintOf(this.#path())) !== this.#fingerprint;
  }

  #path(): string {
    const { source, env } = this.#options;
    const file = secretFileOf(source, env);
    if (file !== undefined) return file;
    const hint = 'set LoadCredential= in the unit; run a command as root';
    throw this.#unavailable('cannot be read: $CREDENTIALS_DIRECTORY is not set', hint);
  }

  async #readFile(path: string): Promise<Buffer> {
    const kept = keptFile(path);
    if (kept !== undefined) return kept;
    // Without O_NONBLOCK, opening a named pipe would block.
    const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK).catch((error: NodeJS.ErrnoException) => {
      const isForbidden = error.code === 'EACCES';
      const hint = `make it readable for the user ${ownUserName()} (chown, chmod 600), who runs this`;
      const isMissing = error.code === 'ENOENT';
      const other = isMissing ? 'there is no such file: write the secret into it' : asJobtailError(error).hint;
      throw this.#unavailable(`cannot be read (${error.code})`, isForbidden ? hint : (other ?? hint));
    });
    try {
      const stats = await handle.stat();
      if (!stats.isFile())
        throw this.#unavailable('cannot be read: it is no regular file', 'put the secret into a file');
      if (stats.size > MAX_BYTES) throw this.#unavailable(`is larger than ${MAX_BYTES} bytes`, ONE_LINE);
      if (this.#options.source.kind === 'file' && (stats.mode & 0o004) !== 0) this.#warn(path);
      return await handle.readFile();
    } finally {
      await handle.close();
    }
  }

  #warn(path: string): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    this.#options.onWarning?.(`every user can read ${path}, which contains the ${this.#options.name}: chmod 600 it`);
  }

  #textOf(bytes: Buffer): string {
    let text: string;
    try {
      text = new TextDecoder('utf-8', { fatal: true }).decode(bytes).replace(/\r?\n$/, '');
    } catch {
      throw this.#unavailable('is not UTF-8 text', ONE_LINE);
    }
    if (text === '') throw this.#unavailable('is empty', ONE_LINE);
    if (this.#options.isPem !== true && /\p{Cc}/u.test(text))
      throw this.#unavailable('has more than one line or control characters in it', ONE_LINE);
    return text;
  }

  #unavailable(what: string, hint: string): JobtailError {
    return new JobtailError(this.#options.code ?? 'secret-unavailable', `${this.place} ${what}`, { hint });
  }
}

function placeOf({ name, source, env }: SecretOptions): string {
  switch (source.kind) {
    case 'file':
      return `the ${name} in the file ${source.path}`;
    case 'command':
      return `the ${name} that the program ${source.argv[0]} prints`;
    case 'credential':
      return `the ${name} in the systemd credential ${secretFileOf(source, env) ?? source.name}`;
  }
}

const ONE_LINE = 'what is expected is the secret alone, on one line';

const fingerprintOf = async (path: string) => stampOf(await stat(path, EXACT).catch(() => undefined));

const HINTS: Partial<Record<ErrorCode, string>> = {
  timeout: 'run it by hand; see auth.commandTimeoutSeconds',
  'answer-too-large': 'it must print the secret only',
  'local-io': 'check its path and its rights',
};

/** The output of a program such as `pass show NAME`. Errors name the program, never its arguments or output. */
async function printedSecret(
  { argv, timeoutMs, environment }: Extract<SecretSource, { kind: 'command' }>,
  signal: AbortSignal,
): Promise<Buffer> {
  const [command = '', ...args] = argv;
  const limits = { limit: { totalMs: timeoutMs }, maxBytes: MAX_BYTES, signal };
  const hidden = args.filter((arg) => arg.length >= MIN_HIDDEN_ARGUMENT);
  const end = await printedBy({ command, args, env: environmentWith(environment), ...limits }).catch(
    (thrown: unknown) => {
      const { code, message } = asJobtailError(thrown);
      if (code === 'aborted') throw new JobtailError('aborted', 'the sign-in was stopped');
      const lines = thrown instanceof OverLimit ? thrown.stderr.trim().split(/[\r\n]+/) : [];
      const lastLine = safeText(lines.at(-1) ?? '', hidden);
      const quote = lastLine === '' ? '' : `; its last line: ${lastLine}`;
      const hint = HINTS[code] ?? 'check the command in the section auth';
      throw new JobtailError('secret-unavailable', `${message}${quote}`, { hint });
    },
  );
  if (end.code === 0) return end.printed;
  const lines = end.printed.toString().match(/[^\r\n]+/g) ?? [];
  const whole = end.stderr.length < MAX_STDERR ? end.stderr : end.stderr.slice(CUT_CHARACTERS);
  const stderr = safeText(whole, [...hidden, ...lines]);
  const how = end.killedBy === null ? `ended with exit code ${end.code}` : `was ended by ${end.killedBy}`;
  throw new JobtailError('secret-unavailable', `the program ${command} ${stderr === '' ? how : `${how}: ${stderr}`}`, {
    hint: 'run it by hand as the user of the agent',
  });
}
