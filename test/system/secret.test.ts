/** Secrets from files, commands and systemd credentials. */
import { execFile } from 'node:child_process';
import { mkdir, readFile, symlink } from 'node:fs/promises';
import { promisify } from 'node:util';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { SecretSource } from '../../src/auth.ts';
import { Secret, type SecretOptions } from '../../src/system/secret.ts';
import { secretDirectory } from '../remote/signin/files.ts';
import { failureOf, NEVER } from '../remote/signin/server.ts';
import { until } from '../support/wire-server.ts';

const { path, write } = secretDirectory();
const SECRET = 'correct-horse-battery-staple';

const secretOf = (source: SecretSource, options: Partial<SecretOptions> = {}) =>
  new Secret({ source, name: 'password', env: {}, onWarning: () => undefined, ...options });
const fileSecret = (file: string) => secretOf({ kind: 'file', path: file });
/** The output of a script in a file, so that its words are no arguments. */
const scriptSecret = async (script: string, timeoutMs = 30_000) =>
  secretOf({ kind: 'command', argv: ['/bin/sh', await write('script', script)], timeoutMs });

it('a program gets the usual variables of the agent and those that are named, and no other', async () => {
  const usual = { PATH: process.env['PATH'], HOME: '/h', USER: 'u', LANG: 'C.UTF-8', LC_TIME: 'C', TZ: 'UTC' };
  const others = { NAMED: 'n', PGPASSWORD: 'p', VAULT_TOKEN: 't', LD_PRELOAD_: 'l', XPATH: 'x', PATH2: 'x' };
  for (const [name, value] of Object.entries({ ...usual, ...others })) vi.stubEnv(name, value);
  onTestFinished(() => void vi.unstubAllEnvs());
  const argv = [process.execPath, '-e', 'console.log(JSON.stringify(process.env))'];
  const source = { kind: 'command', argv, timeoutMs: 30_000, environment: ['NAMED'] } as const;
  const given = JSON.parse(await secretOf(source).read(NEVER)) as Record<string, string>;
  expect(given).toMatchObject({ ...usual, NAMED: 'n' });
  expect(Object.keys(given).filter((name) => name in others)).toEqual(['NAMED']);
});

describe('a secret in a file', () => {
  it.each([
    ['no newline', SECRET, SECRET],
    ['a newline', `${SECRET}\n`, SECRET],
    ['CRLF', `${SECRET}\r\n`, SECRET],
    ['blanks, which belong to it', ` ${SECRET} \n`, ` ${SECRET} `],
    ['a byte-order mark', `\uFEFF${SECRET}\n`, SECRET],
    ['characters of all kinds', 'žluťoučký 😀 "\\\n', 'žluťoučký 😀 "\\'],
  ])('is read: %s', async (_what, content, expected) => {
    expect(await fileSecret(await write('fine', content)).read(NEVER)).toBe(expected);
  });

  it('is read through a link', async () => {
    await write('target', SECRET);
    await symlink(path('target'), path('link'));
    expect(await fileSecret(path('link')).read(NEVER)).toBe(SECRET);
  });

  it.each<[string, () => Promise<unknown>, string]>([
    ['missing', async () => undefined, 'cannot be read (ENOENT)'],
    ['empty', () => write('empty', ''), 'is empty'],
    ['newline', () => write('newline', '\n'), 'is empty'],
    ['lines', () => write('lines', `${SECRET}\nuser: alice`), 'has more than one line'],
    ['control', () => write('control', `${SECRET}\u0000`), 'control characters'],
    ['latin1', () => write('latin1', Buffer.from(`${SECRET}\xe1`, 'latin1')), 'is not UTF-8 text'],
    ['large', () => write('large', SECRET.repeat(10_000)), 'is larger than 65536 bytes'],
    ['directory', () => mkdir(path('directory')), 'it is no regular file'],
    ['pipe', () => promisify(execFile)('mkfifo', [path('pipe')]), 'it is no regular file'],
  ])('is refused: %s', async (name, make, said) => {
    await make();
    const error = await failureOf(fileSecret(path(name)).read(NEVER), [SECRET]);
    expect(error.code).toBe('secret-unavailable');
    expect(error.message).toContain(`the password in the file ${path(name)} `);
    expect(error.message).toContain(said);
    expect(error.hint).toBeTruthy();
  });

  it('that all can read is warned of, once', async () => {
    const warnings: string[] = [];
    const onWarning = (message: string) => warnings.push(message);
    const open = secretOf({ kind: 'file', path: await write('open', SECRET, 0o644) }, { onWarning });
    expect([await open.read(NEVER), await open.read(NEVER)]).toEqual([SECRET, SECRET]);
    await secretOf({ kind: 'file', path: await write('closed', SECRET, 0o640) }, { onWarning }).read(NEVER);
    expect(warnings).toEqual([expect.stringContaining(`${path('open')}, which contains the password: chmod 600`)]);
  });

  it('is known to have changed or not', async () => {
    const secret = fileSecret(await write('changing', SECRET));
    await secret.read(NEVER);
    expect(await secret.hasChanged()).toBe(false);
    await write('changing', 'another');
    expect(await secret.hasChanged()).toBe(true);
    await secret.read(NEVER);
    expect(await secret.hasChanged()).toBe(false);
  });
});

describe('a secret in a systemd credential', () => {
  it('is read from the directory of the credentials', async () => {
    await write('cluster', `${SECRET}\n`);
    const env = { CREDENTIALS_DIRECTORY: path('') };
    expect(await secretOf({ kind: 'credential', name: 'cluster' }, { env }).read(NEVER)).toBe(SECRET);
    const missing = await failureOf(secretOf({ kind: 'credential', name: 'none' }, { env }).read(NEVER), []);
    expect(missing.message).toBe(`the password in the systemd credential ${path('none')} cannot be read (ENOENT)`);
  });

  it('is refused outside of a unit', async () => {
    const error = await failureOf(secretOf({ kind: 'credential', name: 'cluster' }).read(NEVER), []);
    expect(error).toMatchObject({ code: 'secret-unavailable', hint: expect.stringContaining('LoadCredential=') });
    expect(error.message).toContain('$CREDENTIALS_DIRECTORY is not set');
  });
});

describe('a secret that a program prints', () => {
  it('is its output, without a shell in between', async () => {
    const argv = ['printf', '%s\n', `$HOME ; ${SECRET} *`];
    expect(await secretOf({ kind: 'command', argv, timeoutMs: 30_000 }).read(NEVER)).toBe(`$HOME ; ${SECRET} *`);
  });

  it('is asked for each time', async () => {
    const secret = await scriptSecret(`echo x >> ${path('runs')}; wc -l < ${path('runs')} | tr -d ' '`);
    expect([await secret.read(NEVER), await secret.read(NEVER)]).toEqual(['1', '2']);
    expect(await secret.hasChanged()).toBe(false);
  });

  it('does not come if it waits for input', async () => {
    expect((await failureOf((await scriptSecret('cat')).read(NEVER), [])).message).toContain('is empty');
  });

  it.each([
    ['a failure', 'exit 3', 'ended with exit code 3'],
    ['a failure with a reason', 'echo "no such entry" >&2; exit 1', 'ended with exit code 1: no such entry'],
    ['a failure that tells the secret', `echo ${SECRET}; echo "got ${SECRET}" >&2; exit 1`, 'exit code 1: got ***'],
    ['a signal', 'kill -9 $$', 'was ended by SIGKILL'],
    ['two lines', `echo ${SECRET}; echo two`, 'has more than one line'],
    ['too much', `while echo ${SECRET}; do :; done`, 'printed more than 65536 bytes'],
    ['a long reason', `head -c 1000000 /dev/zero | tr '\\0' x >&2; exit 1`, 'xxx...'],
  ])('is refused: %s', async (_what, script, said) => {
    const error = await failureOf((await scriptSecret(script)).read(NEVER), [SECRET]);
    expect(error.code).toBe('secret-unavailable');
    expect(error.message).toContain('/bin/sh ');
    expect(error.message).toContain(said);
    expect(error.message.length).toBeLessThan(400);
  });

  it.each([
    ['is not there', () => ['/nowhere/program', SECRET], 'is not installed'],
    ['is no program', () => [path('fine'), SECRET], 'cannot be started (permission denied, EACCES)'],
    ['is a directory', () => [path(''), SECRET], 'cannot be started (permission denied, EACCES)'],
    ['cannot be given its arguments', () => ['/bin/echo', `${SECRET}\0`], 'cannot be started (ERR_INVALID_ARG_VALUE)'],
  ])('is refused if the program %s', async (_what, words, said) => {
    const argv = words();
    const error = await failureOf(secretOf({ kind: 'command', argv, timeoutMs: 30_000 }).read(NEVER), [SECRET]);
    expect(error.message).toBe(`the program ${argv[0]} ${said}`);
  });

  it('shows nothing of the arguments that the program repeats', async () => {
    const argv = ['/bin/sh', '-c', 'echo "unknown option $0" >&2; exit 2', SECRET];
    const error = await failureOf(secretOf({ kind: 'command', argv, timeoutMs: 30_000 }).read(NEVER), [SECRET]);
    expect(error.message).toContain('ended with exit code 2');
    // Shorter ones are options.
    const short = ['/bin/sh', '-c', 'echo "$0 and $1" >&2; exit 2', 'w0rd', '-v9'];
    const other = await failureOf(secretOf({ kind: 'command', argv: short, timeoutMs: 30_000 }).read(NEVER), []);
    expect(other.message).toContain('*** and -v9');
  });

  it('is given up when its time is over', async () => {
    const error = await failureOf((await scriptSecret('sleep 1000', 1)).read(NEVER), []);
    expect(error.message).toBe('the program /bin/sh did not end within 0.001 s');
    expect(error.hint).toContain('auth.commandTimeoutSeconds');
  });

  it('shows the last line of a program whose time is over', async () => {
    const script = `while :; do printf 'first\\nenter the code\\n' >&2; sleep 0.01; done`;
    const error = await failureOf((await scriptSecret(script, 500)).read(NEVER), []);
    expect(error.message).toBe('the program /bin/sh did not end within 0.5 s; its last line: enter the code');
  });

  it('is not asked for by who has gone already', async () => {
    const error = await failureOf((await scriptSecret('exit 1')).read(AbortSignal.abort()), []);
    expect(error.code).toBe('aborted');
  });

  it('ends with all its processes when it is stopped', async () => {
    const stop = new AbortController();
    const secret = await scriptSecret(`sleep 1000 & echo $! > ${path('pid')}; wait`);
    const waiting = failureOf(secret.read(stop.signal), []);
    const pid = () =>
      readFile(path('pid'), 'utf8').then(
        (text) => text.trim(),
        () => '',
      );
    await until(async () => (await pid()) !== '');
    stop.abort();
    expect((await waiting).code).toBe('aborted');
    const inner = await pid();
    // Gone, or dead and not yet waited for.
    await until(async () => /^$|\) [ZX] /.test(await readFile(`/proc/${inner}/stat`, 'utf8').catch(() => '')));
  });
});
